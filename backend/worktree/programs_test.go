package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/worktree"
)

// A filter that somebody has written into the repository since a worktree was made, also by way of a file that the configuration includes,
// runs neither at a look nor at the removal nor at the return. The removal is refused as long as a file has that filter, and loses nothing.
func TestRemovalRunsNoFilterOfTheRepository(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(b *bench, key, value string){
		"of its configuration": func(b *bench, key, value string) { b.do(b.repo, "config", key, value) },
		"of an included file": func(b *bench, key, value string) {
			b.do(b.repo, "config", "--file", filepath.Join(b.repo, ".git", "more"), key, value)
			b.do(b.repo, "config", "include.path", "more")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := set(t)
			path, p := b.made("fix")
			marker := filepath.Join(t.TempDir(), "ran")
			runs := "touch " + marker + "; cat"
			for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.evil.textconv"} {
				write(b, key, runs)
			}
			write(b, "filter.evil.required", "true")
			b.leave(path, "code.go", "two\n")
			quiet := func(after string) {
				t.Helper()
				if _, err := os.Lstat(marker); err == nil {
					t.Fatalf("after %s: got the program of the repository run, want not run", after)
				}
			}
			if _, err := b.Inspect(t.Context(), path, p.Head); err != nil {
				t.Errorf("Inspect: got %v, want no error: no file has the filter", err)
			}
			quiet("a look")

			b.leave(path, ".gitattributes", "*.go filter=evil diff=evil\n")
			var named *worktree.ProgramError
			if _, err := b.Inspect(t.Context(), path, p.Head); !errors.As(err, &named) || !strings.HasPrefix(named.Setting, "filter.evil.") {
				t.Errorf("Inspect: got %v, want a ProgramError that names filter.evil", err)
			}
			if err := b.Try(t.Context(), path); !errors.As(err, &named) {
				t.Errorf("Try: got %v, want a ProgramError", err)
			}
			never := func(worktree.Kept) error { t.Error("Remove kept something"); return nil }
			if err := b.Remove(t.Context(), b.repo, path, ref, never); !errors.As(err, &named) {
				t.Errorf("Remove: got %v, want a ProgramError", err)
			}
			if data, err := os.ReadFile(filepath.Join(path, "code.go")); err != nil || string(data) != "two\n" {
				t.Errorf("code.go after the refused removal: got %q, %v, want two", data, err)
			}
			quiet("the refused removal")

			b.leave(path, ".gitattributes", "")
			var k worktree.Kept
			if err := b.Remove(t.Context(), b.repo, path, ref, func(kept worktree.Kept) error { k = kept; return nil }); err != nil {
				t.Fatalf("Remove without the attribute: got error %v, want none", err)
			}
			if err := b.Restore(t.Context(), b.repo, path, k); !errors.As(err, &named) {
				t.Errorf("Restore: got %v, want a ProgramError", err)
			}
			quiet("the return")
		})
	}
}

// A filter whose program is not installed is named, rather than that some other end hung up.
// TestMissingFilterIsNamedInEveryForm: the filter that git needed is named among others that are missing, in the forms in which people write it.
func TestMissingFilterIsNamedInEveryForm(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "git-large")
	for value, want := range map[string]string{"git-large-nowhere smudge": "git-large-nowhere", absent + " smudge": absent, "git large-nowhere smudge": "git-large-nowhere"} {
		b := set(t)
		b.leave(b.repo, ".gitattributes", "*.bin filter=large -text\n", "m.bin", "oid sha256:0\n")
		b.do(b.repo, "add", "--all")
		b.do(b.repo, "commit", "--quiet", "-m", "second")
		b.do(b.repo, "config", "--global", "filter.another.smudge", "git-another-nowhere smudge")
		b.do(b.repo, "config", "--global", "filter.large.smudge", value)
		b.do(b.repo, "config", "--global", "filter.large.required", "true")
		p := b.look(b.repo)
		err := b.Make(t.Context(), p, filepath.Join(p.Beside(), "new"), "deskhand/new")
		if missing, is := errors.AsType[*worktree.MissingFilterError](err); !is || missing.Program != want || missing.Setting != "filter.large.smudge" {
			t.Errorf("Make with filter.large.smudge = %q: got %v, want a MissingFilterError of filter.large.smudge that names %s", value, err, want)
		}
	}
}

func TestMissingFilterIsNamed(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"process", "smudge"} {
		b := set(t)
		b.leave(b.repo, ".gitattributes", "*.bin filter=large -text\n", "m.bin", "version https://git-large.example/spec/v1\noid sha256:0\nsize 12\n")
		b.do(b.repo, "add", "--all")
		b.do(b.repo, "commit", "--quiet", "-m", "second")
		path, _ := b.made("before")
		b.do(b.repo, "config", "--global", "filter.large.clean", "git-large-nowhere clean -- %f")
		b.do(b.repo, "config", "--global", "filter.large."+key, "git-large-nowhere "+key)
		b.do(b.repo, "config", "--global", "filter.large.required", "true")
		p := b.look(b.repo)
		err := b.Make(t.Context(), p, filepath.Join(p.Beside(), "new"), "deskhand/new")
		var missing *worktree.MissingFilterError
		if !errors.As(err, &missing) || missing.Program != "git-large-nowhere" || !strings.HasPrefix(missing.Setting, "filter.large.") {
			t.Errorf("Make with filter.large.%s: got %v, want a MissingFilterError that names git-large-nowhere", key, err)
		}
		if _, err := os.Lstat(filepath.Join(p.Beside(), "new")); err == nil {
			t.Errorf("Make with filter.large.%s: got remains of the refused worktree, want none", key)
		}
		b.leave(path, "m.bin", "changed\n")
		missing = nil
		if err := b.Try(t.Context(), path); !errors.As(err, &missing) || missing.Program != "git-large-nowhere" {
			t.Errorf("Try with filter.large.%s: got %v, want a MissingFilterError that names git-large-nowhere", key, err)
		}
	}
}
