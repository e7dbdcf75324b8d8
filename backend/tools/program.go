package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The environment variables that tell `deskhand mcp` which tools to relay.
const (
	TicketVariable = "DESKHAND_MCP_TICKET"
	SocketVariable = "DESKHAND_MCP_SOCKET"
)

const (
	longestTicket = 512
	welcome       = "ok"
	greetingPause = 10 * time.Second
)

// listenForPrograms opens the socket, unless the socket is open, and returns its path.
func (s *Server) listenForPrograms() (string, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	open, closed := s.socket, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return "", net.ErrClosed
	case open != nil:
		return open.addr, nil
	}
	ln, err := s.cfg.Socket(s.ctx)
	if err != nil {
		return "", err
	}
	d := &door{ln.Addr().String(), ln}
	if err := s.keep(&s.socket, d, func() { s.wg.Go(func() { s.accept(ln) }) }); err != nil {
		return "", err
	}
	return d.addr, nil
}

func (s *Server) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		switch {
		case err == nil:
			s.wg.Go(func() { s.relayed(conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many open files, perhaps
			s.log.Warn("a program that carries tools cannot be let in", "error", err)
			select {
			case <-time.After(time.Second):
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// relayed serves a connection of `deskhand mcp`: a line with the ticket, our line that accepts the ticket, then messages.
func (s *Server) relayed(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(greetingPause)) // fails only when the connection does
	in := bufio.NewReader(conn)
	ticket, err := firstLine(in)
	if err != nil {
		return
	}
	session, secret, _ := strings.Cut(ticket, ".")
	g := s.of(session)
	if !g.opens(overStdio, secret) {
		_, _ = fmt.Fprintln(conn, errEnded) // the program may have gone
		return
	}
	leave, err := g.enter()
	if err != nil {
		return
	}
	defer leave()
	defer context.AfterFunc(g.ctx, func() { _ = conn.Close() })()
	if _, err := fmt.Fprintln(conn, welcome); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{}) // as above
	peer, err := g.server.Connect(g.ctx, &sdk.IOTransport{Reader: carried{in, conn}, Writer: conn, MaxLineLength: mostBody}, nil)
	if err != nil {
		return
	}
	_ = peer.Wait() // the closed connection tells the other side of the end
	_ = peer.Close()
}

// carried reads the buffered bytes before the rest of the connection.
type carried struct {
	io.Reader
	io.Closer
}

func firstLine(in *bufio.Reader) (string, error) {
	var line strings.Builder
	for line.Len() < longestTicket {
		b, err := in.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return line.String(), nil
		}
		line.WriteByte(b)
	}
	return "", errors.New("the line is too long")
}

// Relay is the command `deskhand mcp`: it carries messages between an agent, on in and out, and the Deskhand that has the agent's
// session. Relay returns when the agent closes in, and with an error when the session's tools end.
func Relay(ctx context.Context, socket, ticket string, in io.Reader, out io.Writer) error {
	if socket == "" || ticket == "" {
		return fmt.Errorf("this command is for agents that Deskhand has started: %s and %s are not set", SocketVariable, TicketVariable)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("the Deskhand that started the agent does not answer: %w", err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, ticket); err != nil {
		return err
	}
	from := bufio.NewReader(conn)
	answer, err := firstLine(from)
	if err != nil {
		return err
	}
	if answer != welcome {
		return errors.New(answer)
	}
	sent := make(chan struct{})
	go func() { // ends with in, or with the process, as nothing else ends a read of standard input
		_, _ = io.Copy(conn, in) // fails when the other side has closed, which the copy below notices, or when the agent has
		close(sent)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite() // the other side may have closed
		}
	}()
	_, err = io.Copy(out, from)
	select {
	case <-sent:
		return err
	default:
		return errors.Join(errEnded, err)
	}
}
