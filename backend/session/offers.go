package session

import (
	"bytes"
	"encoding/json"

	"deskhand/backend/acp"
)

// What an agent can do beside the usual; Session.Offers.
const (
	offerFork   = "fork"
	offerSteer  = "steer"
	offerClose  = "close"
	offerDelete = "delete"
	offerList   = "list"

	offerDirectories = "directories" // it works in more than one
)

// applyOffers takes what the agent can do out of its answer to initialize; every other answer is left alone.
func (t *transcript) applyOffers(result json.RawMessage) {
	if !bytes.Contains(result, []byte(`"protocolVersion"`)) {
		return
	}
	can, err := acp.ParseInitialized(result)
	if err != nil || can.ProtocolVersion == 0 {
		return
	}
	t.facts.Offers, t.facts.Takes, t.changed = offers(can), &takes{can.Image, can.Embedded}, true
}

// takes is what a prompt to the agent may hold beside text and links.
type takes struct {
	Image    bool `json:"image,omitempty"`
	Embedded bool `json:"embedded,omitempty"`
}

func offers(can acp.Initialized) []string {
	list := []string{}
	for _, o := range []struct {
		name  string
		there bool
	}{
		{offerFork, can.Fork},
		{offerSteer, can.Steer},
		{offerClose, can.Close},
		{offerDelete, can.Delete},
		{offerList, can.List},
		{offerDirectories, can.Directories},
	} {
		if o.there {
			list = append(list, o.name)
		}
	}
	return list
}
