package attachment

import (
	"strings"
	"sync"
)

// names lists types and their extensions. mime.TypeByExtension reads the system's tables, which differ between machines and make TypeScript a
// film.
const names = `
text/plain: txt text log conf cfg ini env lock properties gitignore
text/markdown: md markdown mdx
text/x-rst: rst
text/html: html htm xhtml
text/css: css
text/x-scss: scss sass
text/x-less: less
text/csv: csv
text/tab-separated-values: tsv
text/calendar: ics
text/vcard: vcf
text/vtt: vtt
application/x-subrip: srt
text/x-diff: diff patch
text/x-tex: tex sty bib
text/troff: man
text/javascript: js mjs cjs
text/jsx: jsx
text/typescript: ts mts cts
text/tsx: tsx
text/x-vue: vue
text/x-svelte: svelte
text/x-astro: astro
text/x-go: go
text/x-python: py pyi pyw
text/x-rust: rs
text/x-c: c h
text/x-c++: cc cpp cxx hh hpp hxx
text/x-objective-c: m mm
text/x-csharp: cs
text/x-fsharp: fs fsx
text/x-java: java
text/x-kotlin: kt kts
text/x-scala: scala sbt
text/x-groovy: groovy gradle
text/x-swift: swift
text/x-dart: dart
text/x-ruby: rb erb rake gemspec
text/x-php: php
text/x-perl: pl pm
text/x-lua: lua
text/x-r: r rmd
text/x-julia: jl
text/x-haskell: hs
text/x-ocaml: ml mli
text/x-elixir: ex exs
text/x-erlang: erl hrl
text/x-clojure: clj cljs cljc edn
text/x-lisp: lisp el scm
text/x-zig: zig
text/x-nim: nim
text/x-nix: nix
text/x-solidity: sol
text/x-assembly: s asm
text/x-shellscript: sh bash zsh fish ksh
text/x-powershell: ps1 psm1 psd1
text/x-msdos-batch: bat cmd
text/x-awk: awk
text/x-vim: vim
text/x-cmake: cmake
text/x-makefile: mk
text/x-dockerfile: dockerfile
text/x-protobuf: proto
text/x-terraform: tf tfvars hcl
text/x-glsl: glsl vert frag wgsl hlsl
application/sql: sql
application/graphql: graphql gql
application/json: json map webmanifest
application/jsonl: jsonl ndjson
application/json5: json5 jsonc
application/x-ipynb+json: ipynb
application/geo+json: geojson
application/yaml: yaml yml
application/toml: toml
application/xml: xml xsd xsl xslt plist
application/x-pem-file: pem crt csr
message/rfc822: eml
image/svg+xml: svg
image/png: png
image/apng: apng
image/jpeg: jpg jpeg jpe jfif
image/gif: gif
image/webp: webp
image/avif: avif
image/heic: heic
image/heif: heif
image/bmp: bmp
image/tiff: tif tiff
image/x-icon: ico
image/vnd.adobe.photoshop: psd
audio/mpeg: mp3
audio/mp4: m4a
audio/aac: aac
audio/ogg: ogg oga opus
audio/flac: flac
audio/wav: wav
audio/aiff: aif aiff
audio/midi: mid midi
video/mp4: mp4 m4v
video/quicktime: mov
video/webm: webm
video/x-matroska: mkv
video/x-msvideo: avi
video/mpeg: mpg mpeg
font/ttf: ttf
font/otf: otf
font/woff: woff
font/woff2: woff2
application/pdf: pdf
application/epub+zip: epub
application/rtf: rtf
application/postscript: ps eps
application/zip: zip
application/gzip: gz tgz
application/x-bzip2: bz2
application/x-xz: xz
application/zstd: zst
application/x-7z-compressed: 7z
application/vnd.rar: rar
application/x-tar: tar
application/java-archive: jar war
application/wasm: wasm
application/vnd.sqlite3: sqlite sqlite3
application/vnd.apache.parquet: parquet
application/msword: doc
application/vnd.ms-excel: xls
application/vnd.ms-powerpoint: ppt
application/vnd.openxmlformats-officedocument.wordprocessingml.document: docx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet: xlsx
application/vnd.openxmlformats-officedocument.presentationml.presentation: pptx
application/vnd.oasis.opendocument.text: odt
application/vnd.oasis.opendocument.spreadsheet: ods
application/vnd.oasis.opendocument.presentation: odp
`

//nolint:gochecknoglobals // a constant in all but name
var table = sync.OnceValues(func() (types, exts map[string]string) {
	types, exts = map[string]string{}, map[string]string{}
	for line := range strings.Lines(names) {
		t, list, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		for i, ext := range strings.Fields(list) {
			types[ext] = t
			if i == 0 {
				exts[t] = ext
			}
		}
	}
	return types, exts
})

func typeOfExtension(ext string) string {
	types, _ := table()
	return types[ext]
}

// preferred maps types to extensions.
func preferred() map[string]string {
	_, exts := table()
	return exts
}
