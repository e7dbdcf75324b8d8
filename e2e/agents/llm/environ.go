package llm

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Environ returns the configuration that makes an agent use this model only: variables for the agent's environment, and files that Environ
// writes to the agent's home directory. Environ returns nil for an unknown agent. The agents have the ids of Deskhand's catalogue.
func (m *Model) Environ(agent, home string) (map[string]string, error) {
	switch agent {
	case "opencode":
		return m.openCode(), nil
	case "claude":
		return m.claude(home), nil
	case "codex":
		return m.codex(home)
	case "gemini":
		return m.gemini(home)
	case "qwen-code":
		return m.qwen(home)
	case "github-copilot-cli":
		return m.copilot(), nil
	case "pi":
		return m.pi(home)
	}
	return nil, nil
}

// Offline returns variables that keep programs which heed them from any network, so that Foreign records the addresses that they wanted.
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
		env["IS_SANDBOX"] = "1" // otherwise the agent refuses to work for root
	}
	return env
}

// codex has its settings in a file. An unknown model gets plain tools, without the code that Codex's newest tools put around them.
func (m *Model) codex(home string) (map[string]string, error) {
	dir := filepath.Join(home, ".codex")
	return map[string]string{"CODEX_HOME": dir, "SCRIPTED_KEY": "none", "INITIAL_AGENT_MODE": "read-only"}, write(filepath.Join(dir, "config.toml"), `
model = "scripted"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"

[features]
default_mode_request_user_input = true

[model_providers.scripted]
name = "Scripted"
base_url = "`+m.URL()+`/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`)
}

func (m *Model) gemini(home string) (map[string]string, error) {
	env := map[string]string{"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": m.URL(), "GEMINI_MODEL": "gemini-2.5-flash"}
	// Without trust for the folder the agent starts no MCP servers and refuses to change its mode.
	return env, write(filepath.Join(home, ".gemini", "settings.json"), `{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}`)
}

func (m *Model) qwen(home string) (map[string]string, error) {
	env := map[string]string{
		"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": m.URL() + "/v1",
		"OPENAI_MODEL": "gpt-4o", // the agent believes that an unknown model cannot see images
	}
	return env, write(filepath.Join(home, ".qwen", "settings.json"), `{
  "security": {"auth": {"selectedType": "openai"}},
  "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}`)
}

func (m *Model) copilot() map[string]string {
	return map[string]string{
		"COPILOT_PROVIDER_BASE_URL": m.URL() + "/v1", "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_API_KEY": "none",
		"COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true",
	}
}

func (m *Model) pi(home string) (map[string]string, error) {
	dir := filepath.Join(home, ".pi", "agent")
	models, err := json.Marshal(object{"providers": object{"scripted": object{
		"baseUrl": m.URL() + "/v1", "api": "openai-completions", "apiKey": "none", "models": []object{{"id": "gpt-4o", "input": []string{"text", "image"}}},
	}}})
	if err != nil {
		return nil, err
	}
	if err := write(filepath.Join(dir, "models.json"), string(models)); err != nil {
		return nil, err
	}
	env := map[string]string{"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}
	return env, write(filepath.Join(dir, "settings.json"), `{"defaultProvider": "scripted", "defaultModel": "gpt-4o", "enableInstallTelemetry": false}`)
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
