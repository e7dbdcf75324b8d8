package transcript

import (
	"fmt"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// plans has the newest entry of each plan of a session, by the plan's id. "" is the plan of the present turn that has none.
type plans map[string]*Entry

// apply folds an update of a plan. In each turn a plan has an entry of its own, so that it stands where the agent was at work on it.
func (p plans) apply(t *Fold, f journal.Frame, u acp.Update) error {
	switch u.Kind {
	case "plan":
		steps, err := acp.ParsePlan(u.Body)
		if err == nil {
			p.set(t, f, acp.PlanUpdate{Steps: steps})
		}
		return err
	case "plan_removed":
		id, err := acp.ParsePlanRemoved(u.Body)
		id = Clip(id, maxLabel)
		if e := p[id]; err == nil && e != nil {
			e.Removed = true
			t.Touch(e)
			delete(p, id)
		}
		return err
	}
	update, err := acp.ParsePlanUpdate(u.Body)
	if err == nil {
		p.set(t, f, update)
	}
	return err
}

// mostPlans is how many plans of a session are remembered at a time. The removal of a forgotten one changes nothing.
const mostPlans = 64

func (p plans) set(t *Fold, f journal.Frame, u acp.PlanUpdate) {
	id := Clip(u.ID, maxLabel)
	e := p[id]
	if e == nil || e.Turn != t.turn {
		e = t.add(f, "plan")
		if len(p) >= mostPlans {
			clear(p)
		}
		p[id] = e
	}
	e.PlanID, e.PlanPath = id, Clip(u.Path, maxLabel)
	e.Plan, e.Text = nil, ClipText(u.Markdown)
	if u.Steps != nil {
		e.Plan = planItems(u.Steps)
	}
	t.Touch(e)
}

// planItems returns the steps of a plan. The last item of a plan that is too long gives the number of omitted steps.
func planItems(steps []acp.PlanItem) []PlanItem {
	list, room := make([]PlanItem, 0, len(steps)), MaxText
	for i, s := range steps {
		item := PlanItem{Content: ClipText(s.Content), Priority: Clip(s.Priority, maxLabel), Status: Clip(s.Status, maxLabel)}
		if room -= len(record.JSON(item)); room < 0 {
			return append(list, PlanItem{Content: fmt.Sprintf("… %d more steps", len(steps)-i), Status: "pending"})
		}
		list = append(list, item)
	}
	return list
}
