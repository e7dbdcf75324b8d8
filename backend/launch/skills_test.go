package launch_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"deskhand/backend/refusal"
)

// A person who writes an entry approves its sources by that, and not yet the programs in the skills.
func TestPutSkillApprovesTheSources(t *testing.T) {
	t.Parallel()
	f := open(t)
	repo := newRepository(t)
	repo.commit(map[string]string{"pdf/SKILL.md": manual})
	item, err := f.PutSkill(t.Context(), f.work, "tools", json.RawMessage(`{"sources":[{"type":"git","source":"`+repo.url+`"}]}`))
	if err != nil || !item.Approved || item.State != "unresolved" || repo.asked.Load() > 0 {
		t.Fatalf("PutSkill: got %+v, %v, %d requests; want it approved, and not fetched", item, err, repo.asked.Load())
	}
	s := f.started(codex, "a")
	if !f.has(".agents/skills/pdf/SKILL.md") || !strings.Contains(s.notices, `Fetching the skills of "tools"`) {
		t.Errorf("a start: got the notices %s, want a fetch, and the skill linked", s.notices)
	}
	list, err := f.Skills(t.Context(), f.work)
	if err != nil || len(list.Items) != 1 || !list.Items[0].Approved || list.Items[0].Commit == "" || len(list.Items[0].Skills) != 1 ||
		list.Items[0].Skills[0].Description != "Reads PDFs." || !strings.HasSuffix(list.Path, "skills.json") {
		t.Errorf("Skills: got %+v, %v; want the skill with its commit", list, err)
	}
	if text, err := f.SkillFile(t.Context(), f.work, "tools", "pdf", "SKILL.md"); err != nil || text != manual {
		t.Errorf("SkillFile: got %q, %v; want %q", text, err, manual)
	}
	if err := f.DeleteSkill(t.Context(), f.work, "tools"); err != nil {
		t.Fatal(err)
	}
	if list, err := f.Skills(t.Context(), f.work); err != nil || len(list.Items) != 0 {
		t.Errorf("Skills after DeleteSkill: got %+v, %v; want none", list, err)
	}
	if !f.has(".agents/skills/pdf/SKILL.md") {
		t.Error("DeleteSkill has taken the skill from an agent that runs")
	}
	f.write("skills/pdf/SKILL.md", manual)
	f.write("skills/pdf/run.sh", "echo 1\n")
	item, err = f.PutSkill(t.Context(), f.work, "mine", json.RawMessage(`{"sources":[{"type":"local","source":"skills"},{"type":"local","source":"none"}]}`))
	if err != nil || item.Approved || item.State != "failed" || !strings.Contains(item.Detail, "none") || len(item.Skills) != 1 {
		t.Errorf("PutSkill of programs: got %+v, %v; want it unapproved, and the missing source told of", item, err)
	}
}

func TestSkillCallsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	repo := newRepository(t)
	repo.commit(map[string]string{"pdf/SKILL.md": manual, "pdf/bin": "a\x00b"})
	ctx := t.Context()
	put := func(entry string) error {
		_, err := f.PutSkill(ctx, f.work, "x", json.RawMessage(entry))
		return err
	}
	refused(t, put(`{"sources":[{"type":"git","source":"-x"}]}`), "config.invalid")
	refused(t, put(`[]`), "config.invalid")
	_, err := f.Skills(ctx, "relative")
	refused(t, err, "directory.relative")
	if _, err := f.FetchSkill(ctx, f.work, "none"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("FetchSkill of a missing entry: got %v, want %v", err, refusal.ErrNotFound)
	}
	f.skills(`{"tools":{"sources":[{"type":"git","source":"` + repo.url + `"}]}}`)
	_, err = f.FetchSkill(ctx, f.work, "tools")
	refused(t, err, "config.unapproved")
	if repo.asked.Load() > 0 {
		t.Error("FetchSkill has fetched without an approval")
	}
	f.approveAll()
	if item, err := f.FetchSkill(ctx, f.work, "tools"); err != nil || item.State != "resolved" || !item.Approved {
		t.Errorf("FetchSkill: got %+v, %v; want it resolved and approved", item, err)
	}
	_, err = f.SkillFile(ctx, f.work, "tools", "pdf", "bin")
	refused(t, err, "skill.no_text")
	if _, err := f.SkillFile(ctx, f.work, "tools", "pdf", "../../SKILL.md"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("SkillFile of another folder: got %v, want %v", err, refusal.ErrNotFound)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.FetchSkill(gone, f.work, "tools"); !errors.Is(err, context.Canceled) {
		t.Errorf("FetchSkill without its caller: got %v, want %v", err, context.Canceled)
	}
	f.skills(`{"tools":`)
	refused(t, put(`{"sources":[]}`), "config.broken")
	if list, err := f.Skills(ctx, f.work); err != nil || list.Problem == "" || len(list.Items) > 0 {
		t.Errorf("Skills of a broken file: got %+v, %v; want a problem", list, err)
	}
}

// An entry that cannot be removed keeps its pin, which would move at the next start without anybody's request otherwise.
func TestSkillThatCannotBeRemovedStaysPinned(t *testing.T) {
	t.Parallel()
	f := open(t)
	repo := newRepository(t)
	repo.commit(map[string]string{"pdf/SKILL.md": manual})
	if _, err := f.PutSkill(t.Context(), f.work, "tools", json.RawMessage(`{"sources":[{"type":"git","source":"`+repo.url+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	item, err := f.FetchSkill(t.Context(), f.work, "tools")
	if err != nil || item.Commit == "" {
		t.Fatalf("FetchSkill: got %+v, %v; want a commit", item, err)
	}
	lock := flock.New(filepath.Join(f.work, ".sandbox-agent", "config", ".lock")) // of another program
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := f.DeleteSkill(ctx, f.work, "tools"); err == nil {
		t.Fatal("DeleteSkill succeeds while another program has the lock")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	list, err := f.Skills(t.Context(), f.work)
	if err != nil || len(list.Items) != 1 || list.Items[0].Commit != item.Commit {
		t.Errorf("Skills: got %+v, %v; want the commit %s", list, err, item.Commit)
	}
}
