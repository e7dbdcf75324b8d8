package background_test

import (
	"context"
	"testing"
	"testing/synctest"

	"deskhand/backend/background"
)

func TestStopEndsWhatRunsAndRefusesMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New()
		ended := false
		if !g.Start(func() { <-g.Life().Done(); ended = true }) {
			t.Error("Start: got false, want true before Stop")
		}
		call, release := g.Call(t.Context())
		defer release()
		synctest.Wait()
		if ended || call.Err() != nil || g.Stopped() {
			t.Errorf("before Stop: got ended %v, call %v, stopped %v, want none of them", ended, call.Err(), g.Stopped())
		}
		g.Stop()
		g.Wait()
		synctest.Wait()
		if !ended || call.Err() == nil || !g.Stopped() {
			t.Errorf("after Stop: got ended %v, call %v, stopped %v, want all of them", ended, call.Err(), g.Stopped())
		}
		if g.Start(func() { t.Error("f ran after Stop") }) {
			t.Error("Start after Stop: got true, want false")
		}
	})
}

func TestRefuseLetsGoroutinesEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New()
		release := make(chan struct{})
		g.Start(func() { <-release })
		g.Refuse()
		if g.Start(func() {}) {
			t.Error("Start after Refuse: got true, want false")
		}
		if g.Stopped() {
			t.Error("Stopped after Refuse: got true, want false")
		}
		close(release)
		g.Wait()
	})
}

func TestCallEndsWithItsCaller(t *testing.T) {
	g := background.New()
	defer g.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	call, release := g.Call(ctx)
	defer release()
	cancel()
	if call.Err() == nil {
		t.Errorf("Call(ctx) after the end of ctx: got no error, want %v", context.Canceled)
	}
	if g.Stopped() {
		t.Error("Stopped: got true, want false: a call ends nothing else")
	}
}
