package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

type dataCommand struct {
	Where  dataWhereCommand  `cmd:"" default:"withargs" help:"Tell where the data is (default)."`
	Use    dataUseCommand    `cmd:"" help:"Use the data of another directory from now on, such as a copy on another disk."`
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
	if w.Usual != "" && w.Usual != w.Directory {
		p.say("The usual directory is %s.\n", printable(w.Usual))
	}
	if w.Old != "" {
		p.say("Until %s Deskhand used the data in %s. What is there stays as it is, and may have messages that the present data lacks.\n", w.MovedAt.Local().Format("2 January 2006"), printable(w.Old))
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

type dataUseCommand struct {
	common
	Directory string `arg:"" placeholder:"DIR" help:"The directory, with all data of Deskhand in it."`
	Anyway    bool   `help:"Also use a copy that is older than the present data or lacks files of it, and a disk that is not fit for it."`
}

// Run makes the next start use another directory.
func (c *dataUseCommand) Run(p *Program) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	before := places.Data
	err = places.Use(ctx, c.Directory, c.Anyway)
	if _, held := errors.AsType[*datadir.HeldError](err); held {
		return fmt.Errorf("%w; quit it first", err)
	}
	if err != nil {
		return err
	}
	if places.Data == before {
		p.say("The data is in %s.\n", printable(before))
		return nil
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
