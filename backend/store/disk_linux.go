package store

import "golang.org/x/sys/unix"

// Unfit returns why the disk of a directory is of a kind that cannot hold the data; "" = no reason is known.
func Unfit(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	const ( // constants of linux/magic.h that package unix lacks
		cifs        = 0xff534d42
		smb2        = 0xfe534d42
		exfat       = 0x2011bab0
		mayNotStart = 0x8 // ST_NOEXEC
	)
	switch uint32(s.Type) { //nolint:gosec // the type and its sign differ between systems
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, cifs, smb2, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC:
		return "it is a disk of the network, where SQLite cannot keep what it promises"
	case unix.MSDOS_SUPER_MAGIC, exfat:
		return "it is a FAT disk, which keeps no rights of files and has no links"
	}
	if s.Flags&mayNotStart != 0 {
		return "no program may be started from it (it is mounted noexec), and installed agents are programs"
	}
	return ""
}
