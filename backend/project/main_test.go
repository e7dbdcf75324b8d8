package project_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/project"
	"deskhand/backend/proxy"
)

// bringing names, in the environment of a test program, the repository from which it brings copies into its working directory, rather than run
// tests.
const bringing = "DESKHAND_TEST_BRING"

func TestMain(m *testing.M) {
	if repository := os.Getenv(bringing); repository != "" {
		if err := bring(repository); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func bring(repository string) error {
	worktree, err := os.Getwd()
	if err != nil {
		return err
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		return err
	}
	defer processes.Close()
	_, err = project.Bring(context.Background(), project.Git{Processes: processes, Environ: os.Environ()}, repository, worktree, project.Project{Copy: []string{"*.local"}, Link: []string{"node_modules"}})
	return err
}
