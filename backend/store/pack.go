package store

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packer compresses and decompresses (zstd, RFC 8878), for any number of callers at a time. The tools are set up at first use, with
// little memory, because few callers compress at a time.
type packer struct {
	tools func() (*zstd.Encoder, *zstd.Decoder, error)
}

// longestPlain limits the size of decompressed data: no message of an agent is as long.
const longestPlain = 256 << 20

func newPacker() *packer {
	var enc *zstd.Encoder
	var dec *zstd.Decoder
	setUp := sync.OnceValue(func() (err error) {
		if enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
			return err
		}
		dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(longestPlain))
		return err
	})
	return &packer{tools: func() (*zstd.Encoder, *zstd.Decoder, error) {
		err := setUp()
		return enc, dec, err
	}}
}

func (p *packer) pack(data []byte) ([]byte, error) {
	enc, _, err := p.tools()
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(data, nil), nil
}

func (p *packer) unpack(data []byte) ([]byte, error) {
	_, dec, err := p.tools()
	if err != nil {
		return nil, err
	}
	plain, err := dec.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return plain, nil
}

// Pack compresses data for the database.
func (db *DB) Pack(data []byte) ([]byte, error) { return db.packer.pack(data) }

// Unpack decompresses data from Pack. Damaged data is ErrDamaged.
func (db *DB) Unpack(data []byte) ([]byte, error) { return db.packer.unpack(data) }
