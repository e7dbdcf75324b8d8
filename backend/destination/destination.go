// Package destination reads the addresses that agents ask a person to open, into the single form that every program reads alike: the address
// that a person sees is the address that a browser gets. Pure.
package destination

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Destination is where an address leads.
type Destination struct {
	URL     string // the whole address, as a browser gets the address
	Host    string // the name or the number of the host in ASCII, with the port
	Unicode string // how the name of the host would be shown, or "" for a name that is plain ASCII
}

// longest is how long an address may be, in bytes.
const longest = 16 << 10

// domain maps names as browsers do. Names with underscores, which only DNS takes, pass.
//
//nolint:gochecknoglobals // a constant in all but name
var domain = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))

// number is a last label that browsers read as a part of an IPv4 address, in every old spelling of such addresses.
var number = regexp.MustCompile(`^(?:0[xX][0-9a-fA-F]*|[0-9]+)$`)

// endsInNumber reports whether a browser takes a name for an IPv4 address. A dot at the end of the name does not matter.
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return number.MatchString(name[strings.LastIndexByte(name, '.')+1:])
}

// Read returns where an address leads. Only addresses of http and https lead somewhere. The error says in words of a person why the address is
// not opened.
func Read(address string) (Destination, error) {
	if len(address) > longest || !utf8.ValidString(address) {
		return Destination{}, errors.New("it is too long, or no text")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return Destination{}, errors.New("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return Destination{}, errors.New("only http and https are")
	case u.User != nil:
		return Destination{}, errors.New("what stands before the @ can be taken for its host")
	case u.Hostname() == "":
		return Destination{}, errors.New("it has no host")
	}
	to := Destination{}
	name := u.Hostname()
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.String()
		if ip.Is6() {
			name = "[" + name + "]"
		}
	} else if name, err = asciiName(name); err != nil || name == "" || endsInNumber(name) {
		return Destination{}, errors.New("its host is no name")
	}
	if strings.Contains("."+name, ".xn--") {
		to.Unicode, _ = domain.ToUnicode(name) // what cannot be shown stays as it is
	}
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	u.Host, u.RawQuery = name, plainQuery(u.RawQuery)
	to.Host, to.URL = u.Host, u.String()
	return to, nil
}

// plainQuery returns a query as browsers send the query, without letters that a person may not see or may see elsewhere. Package net/url leaves
// a query as the query came.
func plainQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c >= utf8.RuneSelf || strings.IndexByte(" <>\"", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// asciiName returns a name as DNS has the name. A name that becomes another name when read again is refused, so that all programs read a name
// alike.
func asciiName(name string) (string, error) {
	ascii, err := domain.ToASCII(name)
	if err != nil {
		return "", err
	}
	if again, err := domain.ToASCII(ascii); err != nil || again != ascii {
		return "", errors.New("it is read in several ways")
	}
	return ascii, nil
}
