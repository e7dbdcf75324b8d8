package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// What is made in a directory has its rights here, whatever mode is asked for, and outside of a person's profile these let every account of
// the computer change it. This was never run on Windows.

// MakePrivate makes a directory that only we, the system and its administrators may use, with those above it as far as they are missing. One
// that is there is made so if it is empty; with something in it it stays as it is (see warnOfStrangers).
func MakePrivate(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case err == nil:
		used := slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() != noteName })
		if root := filepath.Dir(dir) == dir; !used && !root {
			_ = protect(dir) // of a disk without rights: then it is told
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700) // which knows what is wrong with it
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	rights, err := ourRights()
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return err
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: rights}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	err = windows.CreateDirectory(name, &attributes)
	if err == nil {
		return nil
	}
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) { // another start was first, or it is a file
		return os.MkdirAll(dir, 0o700)
	}
	return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
}

func protect(dir string) error {
	rights, err := ourRights()
	if err != nil {
		return err
	}
	list, _, err := rights.DACL()
	if err != nil {
		return err
	}
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION // nothing comes from above any more
	return windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, what, nil, nil, list, nil)
}

// ourRights are all rights, for us, the system and its administrators, on a directory and what is made in it.
func ourRights() (*windows.SECURITY_DESCRIPTOR, error) {
	me, err := ourAccount()
	if err != nil {
		return nil, err
	}
	return windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;" + me + ")(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)")
}

func ourAccount() (string, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	return user.User.Sid.String(), nil
}

// grants are what a directory allows, and to whom, and who we are.
func grants(dir string) (list []grant, me string, err error) {
	if me, err = ourAccount(); err != nil {
		return nil, "", err
	}
	rights, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return nil, "", err
	}
	const everyone, all = "S-1-1-0", 0x10000000
	if rights == nil {
		return []grant{{everyone, all}}, me, nil
	}
	if owner, _, err := rights.Owner(); err == nil && owner != nil {
		const writeRights = 0x40000 // whatever the list says
		list = append(list, grant{owner.String(), writeRights})
	}
	acl, _, _ := rights.DACL()
	if acl == nil { // no list lets everybody in
		return append(list, grant{everyone, all}), me, nil
	}
	for n := range uint32(acl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(acl, n, &ace); err != nil {
			return nil, "", err
		}
		if ace.Header.AceType == windows.ACCESS_ALLOWED_ACE_TYPE {
			list = append(list, grant{(*windows.SID)(unsafe.Pointer(&ace.SidStart)).String(), uint32(ace.Mask)})
		}
	}
	return list, me, nil
}
