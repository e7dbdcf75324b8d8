package llm

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Environ is what makes an agent content with this model alone: variables for its environment, given its home directory; nil for an
// agent that is not known here.
func (m *Model) Environ(agent, home string) map[string]string {
	switch agent {
	case "opencode":
		return m.openCode()
	case "claude":
		return m.claude(home)
	}
	return nil
}

// Offline are variables that keep programs which heed them from any network, so that what they wanted is seen in Foreign.
func (m *Model) Offline() map[string]string {
	proxy, own := m.URL(), "127.0.0.1,localhost"
	return map[string]string{
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "http_proxy": proxy, "https_proxy": proxy, "NO_PROXY": own, "no_proxy": own,
	}
}

func (m *Model) openCode() map[string]string {
	config, err := json.Marshal(object{
		"model": "scripted/one", "small_model": "scripted/one", "enabled_providers": []string{"scripted"},
		"share": "disabled", "autoupdate": false,
		"permission": object{"bash": "ask", "edit": "ask", "webfetch": "ask"},
		"provider": object{"scripted": object{
			"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
			"options": object{"baseURL": m.URL() + "/v1", "apiKey": "none"},
			"models": object{"one": object{
				"name": "One", "attachment": true, "tool_call": true, "limit": object{"context": 100000, "output": 10000},
				"modalities": object{"input": []string{"text", "image", "pdf"}, "output": []string{"text"}},
			}},
		}},
	})
	if err != nil {
		panic(err) // maps of texts and numbers always encode
	}
	return map[string]string{
		"OPENCODE_CONFIG_CONTENT": string(config), "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
	}
}

func (m *Model) claude(home string) map[string]string {
	env := map[string]string{
		"ANTHROPIC_BASE_URL": m.URL(), "ANTHROPIC_API_KEY": "sk-ant-scripted",
		"CLAUDE_CONFIG_DIR": filepath.Join(home, ".claude"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
	}
	if os.Geteuid() == 0 {
		env["IS_SANDBOX"] = "1" // else it refuses to work for root
	}
	return env
}
