package maintenance

import (
	"context"
	"io/fs"
)

// Storage is the amount of stored data, and its size on the disk.
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

// Progress is the progress of rebuilding transcripts.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Storage measures the stored data.
func (m *Maintainer) Storage(ctx context.Context) (Storage, error) {
	var s Storage
	db := m.deps.Store
	var err error
	if s.DatabaseBytes, err = db.Size(); err != nil {
		return s, err
	}
	if s.SnapshotBytes, err = m.deps.SnapshotBytes(ctx); err != nil {
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
	if s.Frames, err = m.journal.Total(ctx, `SELECT id FROM session`); err != nil {
		return s, err
	}
	if s.Pending, err = m.deps.Search.Pending(ctx); err != nil {
		return s, err
	}
	if s.Entries, err = m.entries.Count(ctx); err != nil {
		return s, err
	}
	err = db.Read().QueryRowContext(ctx, `SELECT count(*) FROM session`).Scan(&s.Sessions)
	s.Rebuilding, s.Work = m.progress(), m.job.show()
	return s, err
}
