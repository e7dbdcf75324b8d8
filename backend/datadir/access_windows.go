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

// On Windows a new file inherits its directory's rights, whatever its mode, and outside a person's profile these rights let every account
// change the file. This file was never run on Windows.

// MakePrivate creates a directory that only we, the system and its administrators may use, with missing parents. An existing empty directory
// gets the same rights; a used directory keeps its rights (see warnOfStrangers).
func MakePrivate(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case err == nil:
		used := slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() != noteName })
		if root := filepath.Dir(dir) == dir; !used && !root {
			_ = protect(dir) // fails on a disk without rights, which warnOfStrangers reports
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700) // MkdirAll has the better error
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
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) { // another start was faster, or the path is a file
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
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION // inherits no rights of the parent
	return windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, what, nil, nil, list, nil)
}

// ourRights grants us, the system and its administrators all rights on a directory and its content.
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

// grants lists a directory's grants, and returns our own account.
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
	if acl == nil { // a missing list admits everybody
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
