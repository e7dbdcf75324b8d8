package discordtest

// Drop breaks every connection to the gateway without a close frame. The sessions stay and can be resumed.
func (gw *Gateway) Drop() {
	gw.d.do(func() {
		for l := range gw.lines {
			l.drop()
		}
	})
}

// DropAfter breaks the connection that would receive the event after the next n events.
func (gw *Gateway) DropAfter(n int) { gw.d.do(func() { gw.dropAfter = n }) }

// HangUp closes every connection to the gateway with one of Discord's codes, such as CloseUnknown.
func (gw *Gateway) HangUp(code int) {
	gw.d.do(func() {
		for l := range gw.lines {
			l.hangUp(code, "")
		}
	})
}

// InvalidSession tells every client that its session is invalid. Unless resumable, the sessions end.
func (gw *Gateway) InvalidSession(resumable bool) {
	gw.d.do(func() {
		for l := range gw.lines {
			if s := l.session; s != nil && !resumable {
				delete(gw.sessions, s.id)
				l.session = nil
			}
			l.say(object{"op": opInvalid, "d": resumable})
		}
		if !resumable {
			clear(gw.sessions)
		}
	})
}

// Forget ends all sessions, so that a client which resumes a session hears that the session is invalid.
func (gw *Gateway) Forget() { gw.d.do(func() { clear(gw.sessions) }) }

// Reconnect asks every client to connect again, as Discord does when a gateway machine goes out of service.
func (gw *Gateway) Reconnect() {
	gw.d.do(func() {
		for l := range gw.lines {
			l.say(object{"op": opReconnect, "d": nil})
		}
	})
}

// Beat asks every client for a heartbeat now.
func (gw *Gateway) Beat() {
	gw.d.do(func() {
		for l := range gw.lines {
			l.say(object{"op": opHeartbeat, "d": nil})
		}
	})
}

// Mute keeps everything from being sent at the gateway, acknowledgements too, while the connections stay open. Mute(false) sends
// everything that waited.
func (gw *Gateway) Mute(on bool) {
	gw.d.do(func() {
		gw.muted = on
		for l := range gw.lines {
			l.poke()
		}
	})
}

// Deaf leaves heartbeats without acknowledgement while events still arrive.
func (gw *Gateway) Deaf(on bool) { gw.d.do(func() { gw.deaf = on }) }

// StartsLeft sets how many more sessions the API says the bot may start today.
func (gw *Gateway) StartsLeft(n int) { gw.d.do(func() { gw.startsLeft = n }) }
