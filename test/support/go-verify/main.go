// Reads the leaves, notes, tiles and proofs of a Vatproof log as JSON from standard input. Verifies and recomputes them with the packages
// for transparency logs of Go's checksum database, golang.org/x/mod/sumdb/note and tlog. Prints the results, which a test compares.
// Uses no other packages outside of the standard library, so that Debian's golang-golang-x-mod-dev suffices.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Secret   string            `json:"secret"`
	Verifier string            `json:"verifier"`
	Notes    []string          `json:"notes"`  // signed by Vatproof
	Leaves   [][]byte          `json:"leaves"` // of one log
	Sizes    []int64           `json:"sizes"`  // of trees for which proofs are computed
	Tiles    map[string][]byte `json:"tiles"`  // of the whole log, by path
	Proofs   []proof           `json:"proofs"` // in the tlog-proof format
	Origin   string            `json:"origin"` // that the checkpoints of the proofs must have
}

type proof struct {
	Leaf []byte `json:"leaf"`
	Text string `json:"text"`
}

type answer struct {
	Opened      []string            `json:"opened"` // the texts of the notes
	Signed      []string            `json:"signed"` // the texts of the notes, signed by this program
	Roots       []string            `json:"roots"`  // of the trees of each size, from 1
	Inclusion   map[string][]string `json:"inclusion"`
	Tiles       map[string][]byte   `json:"tiles"`
	Read        int                 `json:"read"`   // number of leaves proved from the given tiles
	Proved      []int64             `json:"proved"` // positions that the given proofs prove
}

func main() {
	var q question
	fail(json.NewDecoder(os.Stdin).Decode(&q))
	verifier, err := note.NewVerifier(q.Verifier)
	fail(err)
	a := answer{Inclusion: map[string][]string{}, Tiles: map[string][]byte{}}
	signNotes(q, verifier, &a)
	hashes := growTree(q, &a)
	prove(q, hashes, &a)
	cutTiles(q, hashes, &a)
	readTiles(q, hashes, &a)
	for _, p := range q.Proofs {
		a.Proved = append(a.Proved, check(p, verifier, q.Origin))
	}
	fail(json.NewEncoder(os.Stdout).Encode(a))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func signNotes(q question, verifier note.Verifier, a *answer) {
	signer, err := note.NewSigner(q.Secret)
	fail(err)
	for _, text := range q.Notes {
		opened, err := note.Open([]byte(text), note.VerifierList(verifier))
		fail(err)
		a.Opened = append(a.Opened, opened.Text)
		signed, err := note.Sign(&note.Note{Text: opened.Text}, signer)
		fail(err)
		a.Signed = append(a.Signed, string(signed))
	}
}

// storage holds the hashes of a tree in the order in which tlog numbers them.
type storage []tlog.Hash

func (s storage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = s[index]
	}
	return hashes, nil
}

func growTree(q question, a *answer) storage {
	var stored storage
	for i, leaf := range q.Leaves {
		more, err := tlog.StoredHashes(int64(i), leaf, stored)
		fail(err)
		stored = append(stored, more...)
		root, err := tlog.TreeHash(int64(i+1), stored)
		fail(err)
		a.Roots = append(a.Roots, root.String())
	}
	return stored
}

func texts(hashes []tlog.Hash) []string {
	list := []string{}
	for _, hash := range hashes {
		list = append(list, hash.String())
	}
	return list
}

func prove(q question, hashes storage, a *answer) {
	for _, size := range q.Sizes {
		for n := int64(0); n < size; n++ {
			record, err := tlog.ProveRecord(size, n, hashes)
			fail(err)
			a.Inclusion[fmt.Sprintf("%d in %d", n, size)] = texts(record)
		}
	}
}

// ourPath returns the path of a tile in C2SP tlog-tiles. It omits the height, which Go's own path contains.
func ourPath(tile tlog.Tile) string {
	return "tile/" + strings.TrimPrefix(tile.Path(), "tile/8/")
}

func cutTiles(q question, hashes storage, a *answer) {
	for _, tile := range tlog.NewTiles(8, 0, int64(len(q.Leaves))) {
		data, err := tlog.ReadTileData(tile, hashes)
		fail(err)
		a.Tiles[ourPath(tile)] = data
	}
}

type tileReader map[string][]byte

func (t tileReader) Height() int                         { return 8 }
func (t tileReader) SaveTiles(_ []tlog.Tile, _ [][]byte) {}
func (t tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var list [][]byte
	for _, tile := range tiles {
		data, ok := t[ourPath(tile)]
		if !ok {
			return nil, fmt.Errorf("no tile %s", ourPath(tile))
		}
		list = append(list, data)
	}
	return list, nil
}

// readTiles proves every leaf from the given tiles. The reader checks each tile against the root.
func readTiles(q question, hashes storage, a *answer) {
	size := int64(len(q.Leaves))
	root, err := tlog.TreeHash(size, hashes)
	fail(err)
	reader := tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, tileReader(q.Tiles))
	for n, leaf := range q.Leaves {
		record, err := tlog.ProveRecord(size, int64(n), reader)
		fail(err)
		fail(tlog.CheckRecord(record, size, root, int64(n), tlog.RecordHash(leaf)))
		a.Read++
	}
}

// check verifies a proof as C2SP tlog-proof specifies, and returns the position that the proof proves.
func check(p proof, verifier note.Verifier, origin string) int64 {
	head, checkpoint, _ := strings.Cut(p.Text, "\n\n")
	lines := strings.Split(head, "\n")
	if lines[0] != "c2sp.org/tlog-proof@v1" {
		fail(fmt.Errorf("not a proof: %q", lines[0]))
	}
	lines = lines[1:]
	if strings.HasPrefix(lines[0], "extra ") {
		lines = lines[1:]
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "index "), 10, 64)
	fail(err)
	var record tlog.RecordProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		fail(err)
		record = append(record, hash)
	}
	opened, err := note.Open([]byte(checkpoint), note.VerifierList(verifier))
	fail(err)
	if !strings.HasPrefix(opened.Text, origin+"\n") {
		fail(fmt.Errorf("unexpected origin: %q", opened.Text))
	}
	// tlog.ParseTree requires this first line. The two lines below it have the same format in Vatproof's checkpoints.
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + strings.TrimPrefix(opened.Text, origin+"\n")))
	fail(err)
	fail(tlog.CheckRecord(record, tree.N, tree.Hash, index, tlog.RecordHash(p.Leaf)))
	return index
}
