package app

import (
	"testing"
	"testing/synctest"
)

// TestClosing: where Wails asks in the window's own thread nobody is waited for there, and a second click asks nobody a second time.
func TestClosing(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, may := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var c closing
				asked, quits, presented := 0, 0, 0
				answer := make(chan bool)
				ask := func() bool {
					asked++
					return <-answer
				}
				click := func() bool {
					return c.stays(apart, ask, func() { quits++ }, func() { presented++ })
				}
				first := make(chan bool, 1)
				go func() { first <- click() }()
				synctest.Wait()
				select {
				case stays := <-first:
					if !apart || !stays {
						t.Errorf("apart %v: it stays %v before anybody has answered", apart, stays)
					}
				default:
					if apart {
						t.Error("the window's thread waits for a person")
					}
				}
				if !click() || asked != 1 || presented != 1 {
					t.Errorf("apart %v, a second click: asked %d times, presented %d times", apart, asked, presented)
				}
				answer <- may
				synctest.Wait()
				if apart && (quits == 1) != may {
					t.Errorf("answered %v: closed %d times", may, quits)
				}
				if !apart && (quits > 0 || <-first == may) {
					t.Errorf("answered %v: it stays the other way round", may)
				}
				go click()
				synctest.Wait()
				if asked != 2 {
					t.Error("nobody is asked again")
				}
				answer <- false
			})
		}
	}
}
