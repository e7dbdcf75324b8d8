package discordtest

// Revoke makes the bot's token invalid: the API answers 401 and the gateway closes the connections.
func (d *Discord) Revoke() {
	d.do(func() {
		d.revoked = true
		for l := range d.Gateway.lines {
			l.hangUp(CloseToken, "Authentication failed.")
		}
	})
}

// Renew returns a new token, as Discord gives a person who resets the token of a bot.
func (d *Discord) Renew() (token string) {
	d.do(func() {
		d.revoked = false
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Replace gives the bot another user id, with the same name and guilds and a new token. The messages so far are then not the bot's own,
// as after a person created a second application.
func (d *Discord) Replace() (token string) {
	d.do(func() {
		d.Bot = d.addUser(d.users[d.Bot].Name, true)
		clear(d.Gateway.sessions)
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Pardon makes the revoked token valid again, which Discord never does, so that a test need not pass a new token on.
func (d *Discord) Pardon() { d.do(func() { d.revoked = false }) }

// AllowContent gives the bot the privileged intent for content or takes the intent away. Without the intent the gateway closes the
// connection of a client that uses the intent.
func (d *Discord) AllowContent(on bool) {
	d.do(func() {
		d.noContent = !on
		for l := range d.Gateway.lines {
			if s := l.session; !on && s != nil && s.intents&intentContent != 0 {
				delete(d.Gateway.sessions, s.id)
				l.hangUp(CloseNotAllowed, "Disallowed intent(s).")
			}
		}
	})
}

// known reports whether token is the bot's token and was not revoked.
func (w *World) known(token string) bool { return token == w.Token && !w.revoked }

func (w *World) applicationFlags() int {
	const contentLimited = 1 << 19
	if w.noContent {
		return 0
	}
	return contentLimited
}
