package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

type dataCommand struct {
	Where  dataWhereCommand  `cmd:"" default:"withargs" help:"Tell where the data is (default)."`
	Move   dataMoveCommand   `cmd:"" help:"Move the data to another directory: copy it, prove the copy, and use it from there."`
	Delete dataDeleteCommand `cmd:"" name:"delete-old" help:"Delete the directory that the data was moved from, once the new one proves whole."`
	Use    dataUseCommand    `cmd:"" help:"Use the data of another directory from now on, such as the old copy."`
	Accept dataAcceptCommand `cmd:"" help:"Go on with the data directory as it is, although its database is missing, empty, older or another one."`
	Wait   dataWaitCommand   `cmd:"" help:"Wait until the directory of the data is there: for a disk that is plugged in later."`
}

type dataWhereCommand struct {
	common
	JSON bool `name:"json" help:"Print it as JSON."`
}

// Run prints the data directory. Run needs neither a running Deskhand nor an existing directory.
func (c *dataWhereCommand) Run(p *Program) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	w := places.Where()
	if c.JSON {
		return printJSON(p.Stdout, w)
	}
	if err := p.print("%s\n", printable(w.Directory)); err != nil {
		return err
	}
	if err := places.Check(); err != nil {
		return err
	}
	switch {
	case w.Usual != "" && w.Usual != w.Directory:
		p.say("It was moved there; the usual place is %s.\n", w.Usual)
	}
	switch {
	case w.Deleting:
		p.say("The deletion of the old copy in %s was broken off; `deskhand data delete-old` deletes what is left of it.\n", w.Old)
	case w.Old != "":
		p.say("The old copy, of %s, is in %s. `deskhand data delete-old` deletes it.\n", w.MovedAt.Local().Format("2 January 2006"), w.Old)
	}
	return nil
}

type dataAcceptCommand struct{ common }

// Run accepts a directory whose database is not the database that was there before.
func (c *dataAcceptCommand) Run(p *Program) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	if err := places.Check(); err != nil {
		return err
	}
	aside, err := backend.AcceptData(places)
	if err != nil {
		return err
	}
	if aside != "" {
		p.say("The next start makes an empty database in %s. What was beside the lost one is in %s.\n", printable(places.Data), printable(aside))
		return nil
	}
	p.say("The next start goes on with the database that is in %s.\n", printable(places.Data))
	return nil
}

type dataMoveCommand struct {
	common
	Directory string `arg:"" placeholder:"DIR" help:"A directory that is empty, or is not there yet."`
	StopTurns bool   `help:"End the turns that run."`
	Check     bool   `help:"Only tell what it would take, or what is in the way."`
}

// movePlan and dataMove decode records of the API.
type movePlan struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
	Free  int64  `json:"free"`
	Turns int    `json:"turns"`
}

type dataMove struct {
	State  string            `json:"state"`
	Step   string            `json:"step"`
	From   string            `json:"from"`
	To     string            `json:"to"`
	Done   int64             `json:"done"`
	Total  int64             `json:"total"`
	Code   string            `json:"code"`
	Params map[string]string `json:"params"`
}

type dataPlace struct {
	Directory string    `json:"directory"`
	Move      *dataMove `json:"move"`
}

// Run moves the data through the running Deskhand, or by itself when none runs.
func (c *dataMoveCommand) Run(p *Program) (err error) {
	to, err := filepath.Abs(c.Directory)
	if err != nil {
		return err
	}
	return p.withHost(c.common, func(ctx context.Context, api func() (*api, error)) error {
		a, err := api()
		if err != nil {
			return err
		}
		defer a.close()
		in := map[string]any{"path": to, "stopTurns": c.StopTurns}
		var plan movePlan
		if err := a.call(ctx, "POST", "storage/move/check", in, &plan); err != nil {
			return moveProblem(ctx, err)
		}
		p.say("%s in %d files go to %s, where %s are free.\n", mebibytes(plan.Bytes), plan.Files, printable(plan.Path), mebibytes(plan.Free))
		if c.Check {
			return nil
		}
		if err := a.call(ctx, "POST", "storage/move", in, nil); err != nil {
			return moveProblem(ctx, err)
		}
		return c.follow(ctx, p, api)
	})
}

// follow waits for the end of a move. In the move's last moment the API does not answer; follow then asks again at the directory where the
// data is by then.
func (c *dataMoveCommand) follow(ctx context.Context, p *Program, reach func() (*api, error)) error {
	told, unheard := time.Now(), 0
	for {
		m, err := c.look(ctx, reach)
		switch {
		case ctx.Err() != nil:
			return c.cancel(ctx, reach)
		case err != nil:
			const most = 10 // each attempt takes two seconds by itself
			if unheard++; unheard > most {
				return fmt.Errorf("the Deskhand that moves the data does not answer: %w. `deskhand data where` tells where it is", err)
			}
		case m.State != "running":
			return moveResult(ctx, p, m)
		case time.Since(told) > time.Second:
			told = time.Now()
			p.say("%s\n", moveProgress(m))
		}
		select {
		case <-time.After(verifyEvery):
		case <-ctx.Done():
			return c.cancel(ctx, reach)
		}
	}
}

func (c *dataMoveCommand) look(ctx context.Context, reach func() (*api, error)) (dataMove, error) {
	a, err := reach()
	if err != nil {
		return dataMove{}, err
	}
	defer a.close()
	var place dataPlace
	if err := a.call(ctx, "GET", "storage/move", nil, &place); err != nil {
		return dataMove{}, err
	}
	if place.Move == nil {
		return dataMove{}, errors.New("it knows of no move")
	}
	return *place.Move, nil
}

// cancel cancels the move when this command is interrupted.
func (c *dataMoveCommand) cancel(ctx context.Context, reach func() (*api, error)) error {
	if a, err := reach(); err == nil {
		defer a.close()
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = a.call(ctx, "DELETE", "storage/move", nil, nil) // `data where` shows the outcome
	}
	return &failure{exitCancel, errors.New("interrupted: the data is where it was, unless the copy was whole by then; `deskhand data where` tells it")}
}

func moveProgress(m dataMove) string {
	switch m.Step {
	case "stop":
		return "Ending what runs…"
	case "open":
		return "Opening…"
	}
	word := map[string]string{"copy": "Copying", "prove": "Proving"}[m.Step]
	return fmt.Sprintf("%s: %s of %s…", word, mebibytes(m.Done), mebibytes(m.Total))
}

func moveResult(ctx context.Context, p *Program, m dataMove) error {
	switch m.State {
	case "done":
		p.say("The data is in %s now, and was proven to be what it was. The old copy in %s stays as it is; `deskhand data delete-old` deletes it.\n",
			printable(m.To), printable(m.From))
		return nil
	case "cancelled":
		return &failure{exitCancel, errors.New("it was cancelled; the data is where it was")}
	}
	return fmt.Errorf("%w. The data is where it was", moveProblem(ctx, &problem{Code: m.Code, Params: m.Params}))
}

// moveProblem explains why a move is refused.
func moveProblem(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	text, known := map[string]string{
		"move.fixed":     "--data-dir or DESKHAND_DATA_DIR says where the data is. Copy the directory while Deskhand does not run, and name the copy there",
		"move.here":      "the data is held by a command that runs for a moment; try again when it has ended",
		"move.newer":     "a newer version of Deskhand has written the data; only that one moves it",
		"move.running":   "the data is being moved already",
		"move.shared":    "the settings are in the same directory, so that it cannot be moved by itself",
		"move.deleting":  "the old copy in {path} is only half deleted; deskhand data delete-old does the rest, and then it can be moved",
		"move.beside":    "another Deskhand serves the API from the same directory, and has its agents there: {who}. Quit it first",
		"move.turns":     "turns run: {count}. Wait for their end, or add --stop-turns",
		"move.path":      "{path} cannot be: the directory above it must be there",
		"move.inside":    "{path} is in the directory of the data itself, {data}",
		"move.not_empty": "{path} is not empty. Name a new directory in it",
		"move.write":     "{path} cannot be written: {detail}",
		"move.space":     "there is too little room at {path}: it takes {need}, and {free} are free",
		"move.disk":      "the disk of {path} will not do: {detail}",
		"move.failed":    "it did not work: {detail}",
		"move.no_old":    "there is no old copy",
		"move.old_used":  "{path} stays: another program has it, or has used it since. {detail}",
		"move.unproven":  "the old copy stays: the new one does not prove whole. {detail}",
	}[refused.Code]
	if !known {
		return err
	}
	for name, value := range refused.Params {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && (name == "need" || name == "free") {
			value = fmt.Sprintf("%s (%d bytes)", mebibytes(n), n)
		}
		text = strings.ReplaceAll(text, "{"+name+"}", printable(value))
	}
	return errors.New(strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(text, "{detail}", "")), "."))
}

type dataDeleteCommand struct{ common }

// Run deletes the copy of the data that a move has left behind.
func (c *dataDeleteCommand) Run(p *Program) error {
	return p.withHost(c.common, func(ctx context.Context, reach func() (*api, error)) error {
		a, err := reach()
		if err != nil {
			return err
		}
		defer a.close()
		if err := a.call(ctx, "DELETE", "storage/move/old", nil, nil); err != nil {
			return moveProblem(ctx, err)
		}
		p.say("The old copy is deleted.\n")
		return nil
	})
}

// withHost calls f with a way to the Deskhand that can move the data: the running Deskhand, else one opened in this process. f calls reach
// anew for every call, since a move closes the earlier connection.
func (p *Program) withHost(c common, f func(ctx context.Context, reach func() (*api, error)) error) (err error) {
	cfg, log, err := p.config(c, "command")
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := interruptible()
	defer stop()
	h, err := backend.OpenHost(ctx, cfg, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	p.sayReadOnly(h.Backend())
	return f(ctx, func() (*api, error) {
		places, err := datadir.Find(c.DataDir)
		if err != nil {
			return nil, err
		}
		return dialMoving(ctx, places)
	})
}

// dialMoving is dial for a program that may be moving its data, where only the calls of the move answer.
func dialMoving(ctx context.Context, places datadir.Paths) (*api, error) {
	owner, err := places.Owner()
	if err != nil {
		return nil, err
	}
	a := socketAPI(owner.Socket)
	return a, a.call(ctx, "GET", "storage/move", nil, nil)
}

type dataUseCommand struct {
	common
	Directory string `arg:"" placeholder:"DIR" help:"The directory, with data of Deskhand in it."`
}

// Run makes the next start use another directory.
func (c *dataUseCommand) Run(p *Program) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if a, err := dialMoving(ctx, places); err == nil {
		a.close()
		return errors.New("a Deskhand runs; quit it first")
	}
	before := places.Data
	if err := places.Use(c.Directory); err != nil {
		return err
	}
	p.say("From now on the data is in %s. What is in %s stays there.\n", printable(places.Data), printable(before))
	return nil
}

type dataWaitCommand struct {
	common
	Timeout time.Duration `help:"For how long; 0 = until it is there."`
}

// Run waits for the data directory. Run looks once a second, since no portable notification tells of a mounted disk.
func (c *dataWaitCommand) Run(p *Program) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if c.Timeout > 0 {
		ctx, stop = context.WithTimeout(ctx, c.Timeout)
		defer stop()
	}
	for said := false; ; said = true {
		err := places.Check()
		if _, missing := errors.AsType[*datadir.MissingError](err); !missing {
			return err
		}
		if !said {
			p.say("Waiting for %s…\n", printable(places.Data))
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// mebibytes formats a size for people.
func mebibytes(n int64) string {
	mib := float64(n) / (1 << 20)
	if mib < 1<<10 {
		return fmt.Sprintf("%.1f MiB", mib)
	}
	return fmt.Sprintf("%.1f GiB", mib/(1<<10))
}
