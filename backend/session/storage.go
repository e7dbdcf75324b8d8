package session

import (
	"context"
	"io/fs"
)

// Storage is what is kept, and what it takes of the disk.
type Storage struct {
	DatabaseBytes int64     `json:"databaseBytes"`
	BlobBytes     int64     `json:"blobBytes" doc:"As they are on the disk, compressed"`
	Blobs         int64     `json:"blobs"`
	SnapshotBytes int64     `json:"snapshotBytes" doc:"Of what is kept of directories around turns"`
	Sessions      int64     `json:"sessions"`
	Entries       int64     `json:"entries"`
	Frames        int64     `json:"frames" doc:"Messages of the journal"`
	Pending       int64     `json:"pending" doc:"Entries that are not in the search index yet"`
	Rebuilding    *Progress `json:"rebuilding,omitempty" doc:"Absent while no transcript is made anew"`
	Work          *Work     `json:"work,omitempty" doc:"What is done to all of it, or was done last"`
}

// Progress is how far something is.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Storage tells what is kept.
func (c *Client) Storage(ctx context.Context) (Storage, error) {
	var s Storage
	db := c.cfg.Store
	var err error
	if s.DatabaseBytes, err = db.Size(); err != nil {
		return s, err
	}
	if s.SnapshotBytes, err = c.undo.Bytes(ctx); err != nil {
		return s, err
	}
	err = db.Blobs.Each(ctx, func(_ string, info fs.FileInfo) error {
		s.Blobs++
		s.BlobBytes += info.Size()
		return nil
	})
	if err != nil {
		return s, err
	}
	if s.Frames, err = c.journal.Total(ctx); err != nil {
		return s, err
	}
	if s.Pending, err = c.cfg.Search.Pending(ctx); err != nil {
		return s, err
	}
	err = db.Read().QueryRowContext(ctx, `SELECT count(*), (SELECT count(*) FROM entry) FROM session`).Scan(&s.Sessions, &s.Entries)
	s.Rebuilding, s.Work = c.upkeep.progress(), c.upkeep.doing.show()
	return s, err
}
