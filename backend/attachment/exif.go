package attachment

import (
	"bytes"
	"encoding/binary"
)

// orientation is the EXIF orientation of a JPEG (EXIF 2.3, tag 0x0112), from 1 to 8, and 1 when absent. Phones set the orientation instead of
// rotating pixels, and encoding an image anew loses the orientation.
func orientation(data []byte) int {
	const upright, segmentHeader = 1, 4
	for at := 2; at+segmentHeader <= len(data) && data[at] == 0xff; {
		marker, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		end := at + 2 + size
		const app1, startOfScan, least = 0xe1, 0xda, 2
		if marker == startOfScan || size < least || end > len(data) {
			break
		}
		if body, ok := bytes.CutPrefix(data[at+segmentHeader:end], []byte("Exif\x00\x00")); marker == app1 && ok {
			return orientationOf(body)
		}
		at = end
	}
	return upright
}

// orientationOf searches the first directory of a TIFF.
func orientationOf(tiff []byte) int {
	const upright, header, entry, tag, last = 1, 8, 12, 0x0112, 8
	if len(tiff) < header {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	n := int(order.Uint16(tiff[at:]))
	for rest := tiff[at+2:]; n > 0 && len(rest) >= entry; n, rest = n-1, rest[entry:] {
		if order.Uint16(rest) != tag {
			continue
		}
		if o := int(order.Uint16(rest[8:])); o >= upright && o <= last {
			return o
		}
	}
	return upright
}
