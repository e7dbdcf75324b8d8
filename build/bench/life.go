package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// bareStarts measures how long an agent takes to start and answer, and to end after its stdin.
func (b *bench) bareStarts(ctx context.Context) error {
	var began, ended []time.Duration
	for range starts {
		begin := time.Now()
		p, err := startPipe(ctx, b.self)
		if err != nil {
			return err
		}
		err = p.call(request(1))
		began = append(began, time.Since(begin))
		begin = time.Now()
		if err := errors.Join(err, p.stop()); err != nil {
			return err
		}
		ended = append(ended, time.Since(begin))
	}
	b.report.add("bootstrap", floor, millis(percentile(began, 50)))
	b.report.add("delete", floor, millis(percentile(ended, 50)))
	return nil
}

// starts measures the first POST until its answer, and DELETE.
func (b *bench) starts(s *server) error {
	var began, ended []time.Duration
	for range starts {
		begin := time.Now()
		id, c, err := b.instance(s)
		if err != nil {
			return err
		}
		began = append(began, time.Since(begin))
		if s.column == peer && len(began) > 1 { // one hanging instance is enough
			c.close()
			continue
		}
		c.hurry()
		begin = time.Now()
		err = c.remove(id)
		ended = append(ended, time.Since(begin))
		c.close()
		if s.column == peer && errors.Is(err, os.ErrDeadlineExceeded) {
			b.report.note("delete", fmt.Sprintf("no answer in %v", peerPatience))
		} else if err != nil {
			return err
		}
	}
	b.report.add("bootstrap", s.column, millis(percentile(began, 50)))
	if s.column == ours {
		b.report.add("delete", s.column, millis(percentile(ended, 50)))
		b.report.add("delete_max", s.column, millis(slices.Max(ended)))
	}
	return nil
}

// memory measures fresh servers with idle instances, once.
func (b *bench) memory() error {
	if b.instances == 0 || !b.only.MatchString("memory") {
		return nil
	}
	if err := b.start("memory"); err != nil {
		return err
	}
	for _, s := range slices.Clone(b.servers) {
		rss, _, err := s.settle()
		if errors.Is(err, os.ErrNotExist) {
			return nil // no /proc
		}
		if err != nil {
			return err
		}
		b.report.add("memory_0", s.column, rss/1024)
		if err := b.forgive(s.blame(b.fill(s))); err != nil {
			return err
		}
	}
	return nil
}

// fill starts instances in steps, and measures at each.
func (b *bench) fill(s *server) error {
	var first, n float64
	for _, upTo := range []int{1, 24, b.instances} {
		for ; int(n) < upTo; n++ {
			_, c, err := b.instance(s)
			if err != nil {
				return err
			}
			c.close()
		}
		rss, pss, err := s.settle()
		if err != nil {
			return err
		}
		b.report.add(fmt.Sprintf("memory_%d", upTo), s.column, rss/1024)
		b.report.add(fmt.Sprintf("memory_%d_pss", upTo), s.column, pss/1024)
		if upTo == 1 {
			first = rss
		} else {
			b.report.add(fmt.Sprintf("memory_%d_each", upTo), s.column, (rss-first)/(n-1))
		}
	}
	return nil
}

// settle waits until a server's memory rests for a second, or five, and returns it in KiB.
func (s *server) settle() (rss, pss float64, err error) {
	for still, times := 0, 0; still < 10 && times < 50; times++ {
		before := rss
		if rss, pss, err = s.resident(); err != nil {
			return 0, 0, err
		}
		if still++; rss != before {
			still = 0
		}
		<-time.After(100 * time.Millisecond)
	}
	return rss, pss, nil
}
