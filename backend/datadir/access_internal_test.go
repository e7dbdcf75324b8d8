package datadir

import (
	"slices"
	"testing"
)

func TestStrangers(t *testing.T) {
	const (
		me, system, administrators, users, authenticated = "S-1-5-21-1-2-3-1001", "S-1-5-18", "S-1-5-32-544", "S-1-5-32-545", "S-1-5-11"
		all, change, read, list, traverse                = 0x1f01ff, 0x1301bf, 0x1200a9, 0x1, 0x100020
	)
	for name, c := range map[string]struct {
		grants []grant
		want   []string
	}{
		"ours alone":             {[]grant{{me, all}, {system, all}, {administrators, all}}, nil},
		"of a profile":           {[]grant{{system, all}, {administrators, all}, {me, all}, {"S-1-15-3-1024-1", read}}, nil},
		"below C:":               {[]grant{{administrators, all}, {system, all}, {users, read}, {authenticated, change}, {"S-1-3-0", 0x10000000}}, []string{users, authenticated}},
		"another person":         {[]grant{{me, all}, {"S-1-5-21-1-2-3-1002", read}}, []string{"S-1-5-21-1-2-3-1002"}},
		"names alone":            {[]grant{{users, list}}, []string{users}},
		"the way through":        {[]grant{{users, traverse}}, nil},
		"without a list, or FAT": {[]grant{{"S-1-1-0", 0x10000000}}, []string{"S-1-1-0"}},
		"told once":              {[]grant{{users, read}, {users, change}}, []string{users}},
	} {
		if got := strangers(c.grants, me); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
