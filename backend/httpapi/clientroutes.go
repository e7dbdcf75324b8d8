package httpapi

import (
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"deskhand/backend/agents"
	"deskhand/backend/compare"
	"deskhand/backend/discord"
	"deskhand/backend/maintenance"
	"deskhand/backend/processes"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/rulebook"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/transcript"
)

// NewClient makes the client API, without guards: the mount adds them.
func NewClient(cfg ClientConfig) *Client {
	setUpHuma()
	mux := &router{}
	hc := huma.DefaultConfig("Deskhand client API", "1")
	hc.OpenAPIPath, hc.DocsPath, hc.SchemasPath = "", "", ""
	hc.CreateHooks = nil // no $schema in bodies
	registry := huma.NewMapRegistry("#/components/schemas/", nameSchema)
	hc.Components.Schemas = registry
	registry.RegisterTypeAlias(reflect.TypeFor[session.Time](), reflect.TypeFor[time.Time]())
	c := &Client{mux: mux, api: humago.New(mux, hc), cfg: cfg, lib: librariesOf(cfg.Sessions)}
	hc.Components.Parameters = map[string]*huma.Param{keyHeader: {
		Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(257)},
		Description: "Key of this write: a call that repeats key and body within an hour, even while the first call runs, does nothing and gets the answer of the first call. Uploads ignore the key",
	}}
	c.routes()
	c.addEventRecords()
	c.describe()
	return c
}

func (c *Client) routes() {
	c.generalRoutes()
	c.agentRoutes()
	c.loginRoutes()
	c.terminalRoutes()
	c.sessionRoutes()
	c.turnRoutes()
	c.queueRoutes()
	c.requestRoutes()
	c.ruleRoutes()
	c.questionRoutes()
	c.processRoutes()
	c.stragglerRoutes()
	c.trustRoutes()
	c.approvalRoutes()
	c.mcpRoutes()
	c.instructionsRoutes()
	c.skillRoutes()
	c.settingsRoutes()
	c.searchRoutes()
	c.usageRoutes()
	c.lifecycleRoutes()
	c.exportRoute()
	c.placeRoutes()
	c.originRoutes()
	c.storageRoutes()
	c.attachmentRoutes()
	c.discordRoutes()
	c.changeRoutes()
	c.shellRoutes()
	c.treeRoutes()
	c.pictureRoute()
	c.frameRoutes()
	c.keyboardRoutes()
	c.accessRoutes()
	c.worktreeRoutes()
	c.setupRoutes()
	c.landingRoutes()
	c.forgeRoutes()
	c.compareRoutes()
}

// describe completes the library's document: who may call, at which address, and that every call may be refused.
func (c *Client) describe() {
	doc := c.api.OpenAPI()
	doc.Info.License = &huma.License{Name: "MIT", Identifier: "MIT"}
	doc.Servers = []*huma.Server{{URL: "http://127.0.0.1:2468", Description: "Default address of deskhand server"}}
	doc.Security = []map[string][]string{{"token": {}}}
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "The token of the data directory, or one of the client API. The window needs none"},
	}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if op == nil || op.Responses["default"] == nil {
				continue
			}
			refused := *op.Responses["default"]
			refused.Description = "Refused: a problem with a code, and the params of its text"
			op.Responses["4XX"] = &refused
		}
	}
}

// addEventRecords lists the possible data of an event. The library drops unreferenced schemas from the document, although most of these
// appear in routes too; the last alternative allows the data of later versions.
func (c *Client) addEventRecords() {
	registry := c.api.OpenAPI().Components.Schemas
	anything := &huma.Schema{}
	data := registry.Map()["Event"].Properties["data"]
	for _, t := range []reflect.Type{
		reflect.TypeFor[session.Session](), reflect.TypeFor[transcript.Entry](), reflect.TypeFor[transcript.Append](),
		reflect.TypeFor[session.Turn](), reflect.TypeFor[requests.Request](), reflect.TypeFor[requests.QuestionEvent](), reflect.TypeFor[session.BusEvent](),
		reflect.TypeFor[rulebook.Rule](), reflect.TypeFor[rulebook.RuleRemoved](),
		reflect.TypeFor[session.QueueItem](), reflect.TypeFor[session.QueueRemoved](), reflect.TypeFor[session.Removed](),
		reflect.TypeFor[agents.Agent](), reflect.TypeFor[roster.InstallProgress](), reflect.TypeFor[roster.Login](),
		reflect.TypeFor[processes.ProcessSummary](), reflect.TypeFor[settings.Settings](),
		reflect.TypeFor[remotes.Place](), reflect.TypeFor[remotes.PlaceRemoved](), reflect.TypeFor[maintenance.Storage](), reflect.TypeFor[maintenance.Verification](),
		reflect.TypeFor[discord.State](), reflect.TypeFor[compare.Comparison](), reflect.TypeFor[compare.ComparisonRemoved](),
	} {
		data.AnyOf = append(data.AnyOf, registry.Schema(t, true, t.Name()))
	}
	data.AnyOf = append(data.AnyOf, anything)
}
