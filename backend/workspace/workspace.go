// Package workspace holds the record of a workspace: a directory with an id that outlives the directory's path.
package workspace

// Workspace is a directory with an identity that survives a move.
type Workspace struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Missing bool   `json:"missing,omitempty" doc:"The directory is not there now"`
}
