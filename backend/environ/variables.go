package environ

import (
	"maps"
	"slices"
	"strings"
)

// AgentHome is a variable in the environment of every agent that Deskhand installed, and so of all its child processes: the directory of its
// version, which must not be removed meanwhile. The command line would not do, because a node program can overwrite its own.
const AgentHome = "DESKHAND_AGENT_HOME"

// Lookup returns the value of a variable; the last definition counts, as for a process.
func Lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			return v
		}
	}
	return ""
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// withDefaults adds to environ the variables of defaults that environ lacks.
func withDefaults(environ, defaults []string) []string {
	all := slices.Clone(environ)
	for _, kv := range defaults {
		if !slices.ContainsFunc(environ, func(own string) bool { return sameVariable(nameOf(own), nameOf(kv)) }) {
			all = append(all, kv)
		}
	}
	return all
}

// proxies returns the names of the proxy variables, in capital letters.
func proxies() []string { return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} }

// loopback returns the names and addresses of this machine.
func loopback() []string { return []string{"127.0.0.1", "localhost", "::1"} }

// ExceptLoopback adds this machine to NO_PROXY, where the environment names a proxy: agents are given addresses on this machine, those of
// Deskhand's own tools and of the person's servers, and would send the secrets in those addresses to the proxy. Both spellings get the
// values of either, since some programs read only either. Calling ExceptLoopback twice changes nothing more.
func ExceptLoopback(env []string) []string {
	either := func(name string) []string { return []string{Lookup(env, name), Lookup(env, strings.ToLower(name))} }
	if !slices.ContainsFunc(proxies(), func(name string) bool { return strings.Join(either(name), "") != "" }) {
		return env
	}
	var all []string
	for _, list := range append(either("NO_PROXY"), loopback()...) {
		for host := range strings.SplitSeq(list, ",") {
			if host = strings.TrimSpace(host); host != "" && !slices.Contains(all, host) {
				all = append(all, host)
			}
		}
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.EqualFold(nameOf(kv), "NO_PROXY") })
	value := "=" + strings.Join(all, ",")
	if sameVariable("NO_PROXY", "no_proxy") {
		return append(env, "NO_PROXY"+value)
	}
	return append(env, "NO_PROXY"+value, "no_proxy"+value)
}

// With returns environ with own variables in place of those of the same name, and without Deskhand's private variables.
func With(environ []string, own map[string]string) []string {
	env := make([]string, 0, len(environ)+len(own))
	for _, kv := range environ {
		name := nameOf(kv)
		if _, replaced := own[name]; replaced || Private(name) {
			continue
		}
		env = append(env, kv)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}

// Private reports whether a variable holds Deskhand's token or perhaps a password, or belongs to the program that started Deskhand: a service,
// or an agent, which refuses to start in itself.
func Private(name string) bool {
	switch name {
	case AgentHome, "DESKHAND_TOKEN", "DESKHAND_DATA_DIR", "DESKHAND_CATALOGUE_URL", "DESKHAND_DEMO_AGENT", "SANDBOX_AGENT_TOKEN", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID",
		"LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_USEC", "WATCHDOG_PID", "SYSTEMD_EXEC_PID", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT":
		return true
	}
	return false
}
