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

// Variables by which `deskhand mcp` is told whose tools it carries.
const (
	TicketVariable = "DESKHAND_MCP_TICKET"
	SocketVariable = "DESKHAND_MCP_SOCKET"
)

const (
	longestTicket = 512
	welcome       = "ok"
	greetingPause = 10 * time.Second
)

// listenForPrograms opens the socket, unless it is open, and gives its path.
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
		default: // out of files, perhaps
			s.log.Warn("a program that carries tools cannot be let in", "error", err)
			select {
			case <-time.After(time.Second):
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// relayed serves what one `deskhand mcp` carries: a line with the ticket, our word that it is a good one, then messages.
func (s *Server) relayed(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(greetingPause)) // it fails with the connection only
	in := bufio.NewReader(conn)
	ticket, err := firstLine(in)
	if err != nil {
		return
	}
	session, secret, _ := strings.Cut(ticket, ".")
	g := s.of(session)
	if !g.opens(overStdio, secret) {
		_, _ = fmt.Fprintln(conn, errEnded) // it may have gone
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
	_ = peer.Wait() // how it ended is told to the other side by the end itself
	_ = peer.Close()
}

// carried reads what was buffered before it reads on.
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

// Relay is `deskhand mcp`: it carries messages between an agent, on in and out, and the Deskhand that has the agent's session. It returns
// when the agent closes in, and with an error when the session's tools end.
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
	go func() { // ends with in, or with the process: nothing else ends a read of standard input
		_, _ = io.Copy(conn, in) // the other side has closed it, which shows below, or the agent has
		close(sent)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite() // the other side may have closed it
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
