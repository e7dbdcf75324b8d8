package discordtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// The kinds of components, as Discord numbers them.
const (
	componentRow     = 1
	componentButton  = 2
	componentSelect  = 3
	componentText    = 4
	componentDisplay = 10
	componentLabel   = 18
	componentChoice  = 21
	componentChoices = 22
	componentCheck   = 23

	styleLink = 5
)

// component is a component of a message or a modal. The fields are those of all kinds together.
type component struct {
	Type        int             `json:"type"`
	ID          int             `json:"id,omitempty"`
	CustomID    string          `json:"custom_id,omitempty"`
	Label       string          `json:"label,omitempty"`
	Description string          `json:"description,omitempty"`
	Style       int             `json:"style,omitempty"`
	Emoji       json.RawMessage `json:"emoji,omitempty"`
	URL         string          `json:"url,omitempty"`
	Disabled    bool            `json:"disabled,omitempty"`
	Placeholder string          `json:"placeholder,omitempty"`
	Least       *int            `json:"min_values,omitempty"`
	Most        *int            `json:"max_values,omitempty"`
	Options     []option        `json:"options,omitempty"`
	Required    *bool           `json:"required,omitempty"`
	MinLength   *int            `json:"min_length,omitempty"`
	MaxLength   int             `json:"max_length,omitempty"`
	Value       any             `json:"value,omitempty"`
	Content     string          `json:"content,omitempty"`
	Components  []*component    `json:"components,omitempty"`
	Component   *component      `json:"component,omitempty"`
}

type option struct {
	Label       string          `json:"label"`
	Value       string          `json:"value"`
	Description string          `json:"description,omitempty"`
	Emoji       json.RawMessage `json:"emoji,omitempty"`
	Default     bool            `json:"default,omitempty"`
}

// each calls f for every component of list with its path, a container before its content.
func each(list []*component, f func(*component, string)) { walk(list, "components", f) }

func walk(list []*component, path string, f func(*component, string)) {
	for i, c := range list {
		here := path + "." + strconv.Itoa(i)
		f(c, here)
		walk(c.Components, here+".components", f)
		if c.Component != nil {
			f(c.Component, here+".component")
		}
	}
}

func find(list []*component, customID string) (found *component) {
	each(list, func(c *component, _ string) {
		if c.CustomID == customID && customID != "" {
			found = c
		}
	})
	return found
}

// number gives each component without an id the id that Discord would give.
func number(list []*component) []*component {
	next := 0
	each(list, func(c *component, _ string) {
		next++
		if c.ID == 0 {
			c.ID = next
		}
	})
	return list
}

// controls returns the components that people can use.
func controls(list []*component) (shown []Control) {
	for row, top := range list {
		each([]*component{top}, func(c *component, _ string) {
			if control, ok := c.control(); ok {
				control.Row = row
				if top.Type == componentLabel {
					control.Label = top.Label
				}
				shown = append(shown, control)
			}
		})
	}
	return shown
}

func (c *component) control() (Control, bool) {
	kinds := map[int]string{
		componentButton: "button", componentSelect: "select", componentText: "text", componentChoice: "choice", componentChoices: "choices",
		componentCheck: "check",
	}
	shown := Control{
		Kind: kinds[c.Type], Label: c.Label, CustomID: c.CustomID, Style: c.Style, URL: c.URL, Disabled: c.Disabled,
		Required: c.Required == nil || *c.Required, Least: c.least(), Most: c.most(),
	}
	if c.Type == componentSelect {
		shown.Label = c.Placeholder
	}
	if c.Style == styleLink && c.Type == componentButton {
		shown.Kind = "link"
	}
	shown.Value, _ = c.Value.(string)
	for _, o := range c.Options {
		shown.Options = append(shown.Options, Option{o.Label, o.Value, o.Description})
	}
	return shown, shown.Kind != ""
}

func (c *component) least() int {
	if c.Least == nil {
		return 1
	}
	return *c.Least
}

func (c *component) most() int {
	if c.Most == nil {
		return 1
	}
	return *c.Most
}

// takes returns an error when a person could not choose values in c.
func (c *component) takes(values []string) error {
	if c.Type != componentSelect && c.Type != componentChoices {
		if len(values) > 0 {
			return fmt.Errorf("the control %q takes no values", c.CustomID)
		}
		return nil
	}
	if len(values) < c.least() || len(values) > c.most() {
		return fmt.Errorf("the menu %q takes %d to %d values, not %d", c.CustomID, c.least(), c.most(), len(values))
	}
	for _, v := range values {
		if !slices.ContainsFunc(c.Options, func(o option) bool { return o.Value == v }) {
			return fmt.Errorf("the menu %q has no %q", c.CustomID, v)
		}
	}
	return nil
}

const longestCustomID = 100

// checkRows returns Discord's refusal of the components of a message, or nil.
func checkRows(list []*component) *failure {
	const mostRows = 5
	if len(list) > mostRows {
		return invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	for i, row := range list {
		if row.Type != componentRow {
			return invalid(fmt.Sprintf("components.%d.type", i), "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
		}
		if f := checkRow(row, fmt.Sprintf("components.%d", i)); f != nil {
			return f
		}
	}
	return checkAll(list)
}

func checkRow(row *component, path string) *failure {
	const widest = 5
	menus := slices.ContainsFunc(row.Components, func(c *component) bool { return c.Type == componentSelect })
	switch n := len(row.Components); {
	case n < 1 || n > widest:
		return invalid(path+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	case menus && n > 1:
		return invalid(path, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
	}
	for _, c := range row.Components {
		if c.Type != componentButton && c.Type != componentSelect {
			return invalid(path+".components", "UNION_TYPE_CHOICES", "A message's row holds buttons or a menu.")
		}
	}
	return nil
}

// checkAll returns Discord's refusal of components, in a message or a modal, or nil.
func checkAll(list []*component) (refused *failure) {
	seen := map[string]bool{}
	each(list, func(c *component, path string) {
		if refused != nil {
			return
		}
		refused = c.refused(path)
		if refused == nil && c.CustomID != "" && seen[c.CustomID] {
			refused = invalid(path+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
		}
		seen[c.CustomID] = true
	})
	return refused
}

func (c *component) refused(path string) *failure {
	const longestLabel, longestFieldLabel, longestPlaceholder = 80, 45, 150
	link := c.Type == componentButton && c.Style == styleLink
	interactive := c.Type != componentRow && c.Type != componentLabel && c.Type != componentDisplay
	switch {
	case interactive && !link && (c.CustomID == "" || units(c.CustomID) > longestCustomID):
		return invalid(path+".custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	case c.Type == componentButton && units(c.Label) > longestLabel:
		return invalid(path+".label", "BASE_TYPE_MAX_LENGTH", "Must be 80 or fewer in length.")
	case c.Type == componentButton && c.Label == "" && len(c.Emoji) == 0:
		return invalid(path, "BUTTON_COMPONENT_MISSING_LABEL", "A button needs a label or an emoji.")
	case c.Type == componentButton && (c.Style < 1 || c.Style > styleLink):
		return invalid(path+".style", "BASE_TYPE_CHOICES", "Value must be one of (1, 2, 3, 4, 5, 6).")
	case link:
		return c.refusedLink(path)
	case c.Type == componentLabel && (c.Label == "" || units(c.Label) > longestFieldLabel || c.Component == nil):
		return invalid(path+".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.")
	case c.Type == componentLabel && units(c.Description) > longestCustomID:
		return invalid(path+".description", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
	case units(c.Placeholder) > longestPlaceholder || c.Type == componentText && units(c.Placeholder) > longestCustomID:
		return invalid(path+".placeholder", "BASE_TYPE_MAX_LENGTH", "Must be 150 or fewer in length.")
	case c.Type == componentText:
		return c.refusedText(path)
	case c.Type == componentSelect || c.Type == componentChoice || c.Type == componentChoices:
		return c.refusedMenu(path)
	}
	return nil
}

func (c *component) refusedLink(path string) *failure {
	const longest = 512
	u, err := url.Parse(c.URL)
	switch {
	case c.CustomID != "":
		return invalid(path+".custom_id", "BUTTON_COMPONENT_CUSTOM_ID_AND_URL", "A link has no custom id.")
	case units(c.URL) > longest:
		return invalid(path+".url", "BASE_TYPE_MAX_LENGTH", "Must be 512 or fewer in length.")
	case err != nil || !slices.Contains([]string{"http", "https", "discord"}, u.Scheme) || u.Host == "":
		return invalid(path+".url", "BUTTON_COMPONENT_INVALID_URL", "Not a well formed URL.")
	}
	return nil
}

func (c *component) refusedText(path string) *failure {
	const longest = 4000
	value, _ := c.Value.(string)
	switch {
	case units(value) > longest || c.MaxLength > longest || c.MaxLength > 0 && units(value) > c.MaxLength:
		return invalid(path+".value", "BASE_TYPE_MAX_LENGTH", "Must be 4000 or fewer in length.")
	case c.Style != 1 && c.Style != 2:
		return invalid(path+".style", "BASE_TYPE_CHOICES", "Value must be one of (1, 2).")
	case units(c.Label) > 45:
		return invalid(path+".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.")
	}
	return nil
}

func (c *component) refusedMenu(path string) *failure {
	most, least, longest := 25, 1, 100
	if c.Type != componentSelect {
		most = 10
	}
	if c.Type == componentChoice {
		least = 2
	}
	seen := map[string]bool{}
	if n := len(c.Options); n < least || n > most {
		return invalid(path+".options", "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between %d and %d in length.", least, most))
	}
	if c.most() > len(c.Options) || c.least() > c.most() || c.Most != nil && *c.Most < 1 {
		return invalid(path+".max_values", "NUMBER_TYPE_MAX", "A menu cannot take more values than it has options.")
	}
	for i, o := range c.Options {
		here := fmt.Sprintf("%s.options.%d", path, i)
		switch {
		case o.Label == "" || units(o.Label) > longest:
			return invalid(here+".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		case o.Value == "" || units(o.Value) > longest:
			return invalid(here+".value", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		case units(o.Description) > longest:
			return invalid(here+".description", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
		case seen[o.Value]:
			return invalid(here+".value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
		}
		seen[o.Value] = true
	}
	return nil
}

// checkModal returns Discord's refusal of a modal, or nil.
func checkModal(m modalBody) *failure {
	const mostFields, longestTitle = 5, 45
	switch {
	case m.CustomID == "" || units(m.CustomID) > longestCustomID:
		return invalid("data.custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	case m.Title == "" || units(m.Title) > longestTitle:
		return invalid("data.title", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.")
	case len(m.Components) < 1 || len(m.Components) > mostFields:
		return invalid("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	for i, c := range m.Components {
		path := fmt.Sprintf("data.components.%d", i)
		field := c.Component
		if c.Type == componentRow && len(c.Components) == 1 {
			field = c.Components[0]
		}
		switch {
		case c.Type == componentDisplay:
		case field == nil, c.Type != componentRow && c.Type != componentLabel, c.Type == componentRow && field.Type != componentText:
			return invalid(path+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 10, 18).")
		case field.Disabled:
			return invalid(path+".disabled", "MODAL_COMPONENT_DISABLED", "A field of a modal cannot be disabled.")
		}
	}
	return checkAll(m.Components)
}

// fill returns the fields of a modal as Discord sends them after a person filled in values, which go by custom id. fill returns an error
// where Discord's own screen would not submit the modal.
func fill(list []*component, values map[string]any) ([]object, error) {
	var sent []object
	used := 0
	for _, c := range list {
		o := object{"type": c.Type, "id": c.ID}
		sent = append(sent, o)
		field := c.Component
		if c.Type == componentRow {
			field = c.Components[0]
		}
		if field == nil {
			continue
		}
		given, has := values[field.CustomID]
		if has {
			used++
		}
		filled, err := field.filled(given)
		switch {
		case err != nil:
			return nil, err
		case c.Type == componentRow:
			o["components"] = []object{filled}
		default:
			o["component"] = filled
		}
	}
	if used != len(values) {
		return nil, fmt.Errorf("the modal has only %d of the %d fields %v", used, len(values), values)
	}
	return sent, nil
}

// filled returns the field c as Discord sends it with the value given; nil leaves the field as the modal had it.
func (c *component) filled(given any) (object, error) {
	o := object{"type": c.Type, "id": c.ID, "custom_id": c.CustomID}
	required := c.Required == nil || *c.Required
	var err error
	switch c.Type {
	case componentText:
		o["value"], err = c.filledText(given, required)
	case componentSelect, componentChoices:
		list, _ := given.([]string)
		if values, ok := given.([]any); ok { // of JSON
			for _, v := range values {
				list = append(list, fmt.Sprint(v))
			}
		}
		if required || len(list) > 0 {
			err = c.takes(list)
		}
		o["values"] = append([]string{}, list...)
	case componentChoice:
		text, _ := given.(string)
		if text != "" || required {
			o["value"] = text
			err = (&component{Type: componentSelect, CustomID: c.CustomID, Options: c.Options}).takes([]string{text})
		}
	case componentCheck:
		o["value"], _ = given.(bool)
	}
	return o, err
}

func (c *component) filledText(given any, required bool) (string, error) {
	text, ok := given.(string)
	if !ok {
		text, _ = c.Value.(string)
	}
	missing := required && text == ""
	long := c.MaxLength > 0 && units(text) > c.MaxLength
	short := c.MinLength != nil && text != "" && units(text) < *c.MinLength
	if missing || long || short {
		return "", fmt.Errorf("the field %q does not take %q", c.CustomID, text)
	}
	return text, nil
}
