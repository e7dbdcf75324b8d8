package proxy

import (
	"os"
	"testing"
)

func TestSmoke(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	i, err := s.Start(t.Context(), "a", "mock", Command{Path: self, Env: append(os.Environ(), roleVariable+"=agent")})
	if err != nil {
		t.Fatal(err)
	}
	r := i.After(0)
	defer r.Close()
	if err := i.Send(t.Context(), []byte(`{"id":1, "method":"hey"}`)); err != nil {
		t.Fatal(err)
	}
	ms, err := r.Next(t.Context())
	t.Log(string(ms[0].Data), err)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Log(i.Status())
}
