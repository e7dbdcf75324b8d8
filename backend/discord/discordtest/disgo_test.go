//go:build !race

package discordtest_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/disgoorg/disgo/gateway"

	"deskhand/backend/discord/discordtest"
)

// disgo's own client comes in, and goes on where it was when the line breaks. It is not for the race detector, which finds races in it.
func TestDisgoClientResumesAfterDrop(t *testing.T) {
	d := start(t, discordtest.Options{})
	events := make(chan gateway.EventType, 100)
	g := gateway.New(d.Token, func(_ gateway.Gateway, kind gateway.EventType, _ int, _ gateway.EventData) { events <- kind },
		gateway.WithURL(d.Gateway.URL), gateway.WithCompression(gateway.CompressionNone), gateway.WithIntents(intents),
		gateway.WithLogger(slog.New(slog.DiscardHandler)))
	ctx := patient(t)
	if err := g.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.WithoutCancel(t.Context()))
	d.Say(d.Channel, d.Owner, "hello")
	for _, want := range []gateway.EventType{gateway.EventTypeReady, gateway.EventTypeGuildCreate, gateway.EventTypeMessageCreate} {
		if got := <-events; got != want {
			t.Fatalf("event: got %s, want %s", got, want)
		}
	}
	d.Gateway.Drop()
	d.Say(d.Channel, d.Owner, "meanwhile")
	for _, want := range []gateway.EventType{gateway.EventTypeMessageCreate, gateway.EventTypeResumed} {
		select {
		case got := <-events:
			if got != want {
				t.Errorf("event after the drop: got %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatal("it did not come back")
		}
	}
}
