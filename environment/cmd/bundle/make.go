package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"debug/elf"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/atomicfile"
)

// What the other machine runs, and reads.
var (
	//go:embed target/install.sh
	installScript []byte
	//go:embed target/run.sh
	runScript []byte
	//go:embed target/README.txt
	readme []byte
)

// xlaProgram is the one program that needs libraries of the machine it runs on.
const xlaProgram = "bin/reproduce-xla"

// A maker makes a bundle: a folder below out with the parts of a compressed
// archive, their checksums and the script that joins them.
type maker struct {
	version  string    // of the code, as results name it
	date     time.Time // of the files in the archive
	glibc    string    // the oldest version of the C library that xlaProgram starts with
	base     string    // folder of what the archive begins with
	sets     []dataSet
	fetcher  *fetch.Fetcher
	out      string
	partSize int64
	stdout   io.Writer
}

// name is that of the bundle, and of the folder that it becomes.
func (m maker) name() string {
	return "densityuncertainty-" + regexp.MustCompile(`[^A-Za-z0-9.+-]+`).ReplaceAllString(m.version, "-")
}

// folder returns the bundle's folder, which must not exist yet.
func (m maker) folder() (string, error) {
	folder := filepath.Join(m.out, m.name())
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is there already; remove it, or choose another folder with --out", folder)
	}
	return folder, nil
}

// find checks that the bundle is not there and the data are, and downloads what
// can be downloaded.
func (m maker) find(ctx context.Context) error {
	if _, err := m.folder(); err != nil {
		return err
	}
	for _, s := range m.sets {
		paths, archive, err := s.find(ctx, m.fetcher)
		if err != nil {
			return err
		}
		from := archive
		if from == "" {
			from = filepath.Dir(paths[0])
		}
		if err := m.say("data: %s from %s", s.name, from); err != nil {
			return err
		}
	}
	return nil
}

func (m maker) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(m.stdout, format+"\n", args...); err != nil {
		return fmt.Errorf("reporting: %w", err)
	}
	return nil
}

func (m maker) make(ctx context.Context) error {
	folder, err := m.folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.out, 0o755); err != nil {
		return fmt.Errorf("making the folder for the bundle: %w", err)
	}
	stage, err := os.MkdirTemp(m.out, ".bundle.*.part")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	err = m.fill(ctx, stage)
	if err == nil {
		err = m.check(ctx, stage)
	}
	if err == nil {
		err = atomicfile.WriteFolder(folder, func(folder string) error { return m.write(ctx, stage, folder) })
	}
	if err := errors.Join(err, os.RemoveAll(stage)); err != nil {
		return err
	}
	return m.say("%s is ready: copy the folder, or its files one by one, and there: sh install.sh", folder)
}

// fill makes the contents of the archive in the folder stage.
func (m maker) fill(ctx context.Context, stage string) error {
	manifest := []packedFile{}
	for _, s := range m.sets {
		err := s.each(ctx, m.fetcher, func(file dataFile, contents []byte) error {
			entry, packed, err := pack(file, contents)
			if err != nil {
				return err
			}
			manifest = append(manifest, entry)
			return errors.Join(
				put(stage, packedFolder+"/"+file.name, packed),
				m.say("data: %s, %s packed to %s", file.name, megabytes(len(contents)), megabytes(len(packed))))
		})
		if err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(manifest, "", "\t")
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return errors.Join(
		put(stage, manifestFile, text),
		put(stage, "README.txt", readme),
		put(stage, "version", []byte(m.version+"\n")),
		put(stage, "glibc", []byte(m.glibc+"\n")),
		put(stage, "run.sh", runScript),
		os.Chmod(filepath.Join(stage, "run.sh"), 0o755))
}

func megabytes(n int) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// put writes a file below the folder stage.
func put(stage, name string, contents []byte) error {
	path := filepath.Join(stage, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("collecting the bundle: %w", err)
	}
	if err := os.WriteFile(path, contents, 0o644); err != nil {
		return fmt.Errorf("collecting the bundle: %w", err)
	}
	return nil
}

// check restores the data and reads them as the experiments will.
func (m maker) check(ctx context.Context, stage string) error {
	if len(m.sets) == 0 {
		return nil
	}
	if err := m.say("data: checking that they are restored as published"); err != nil {
		return err
	}
	if err := unpack(ctx, stage, io.Discard); err != nil {
		return err
	}
	// A cache that is empty, so that nothing can come from elsewhere.
	f := &fetch.Fetcher{Mirror: filepath.Join(stage, dataFolder), Cache: filepath.Join(stage, "cache")}
	for _, s := range m.sets {
		if err := s.check(ctx, f); err != nil {
			return fmt.Errorf("the data set %s is not as published: %w", s.name, err)
		}
	}
	return nil
}

// write writes the bundle's folder: the parts, their checksums and the script.
func (m maker) write(ctx context.Context, stage, folder string) error {
	parts := &partWriter{folder: folder, name: m.name() + ".tar.gz", size: m.partSize}
	err := m.archive(ctx, stage, parts)
	if err := errors.Join(err, parts.Close()); err != nil {
		return err
	}
	sums := parts.sums
	sums = append(sums, checksum(installScript)+"  install.sh")
	if err := errors.Join(
		put(folder, "SHA256SUMS", []byte(strings.Join(sums, "\n")+"\n")),
		put(folder, "install.sh", installScript)); err != nil {
		return err
	}
	return m.say("parts: %d, %s", len(parts.sums), megabytes(int(parts.total)))
}

// archive writes the compressed archive. The last file is run.sh, whose presence
// tells that all others were unpacked before it.
func (m maker) archive(ctx context.Context, stage string, w io.Writer) error {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	archive := tar.NewWriter(zipped)
	add := func(root, path string) error {
		return filepath.WalkDir(filepath.Join(root, path), func(path string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return m.addFile(archive, path, filepath.ToSlash(name))
		})
	}
	err = add(m.base, ".")
	for _, path := range []string{"README.txt", "version", "glibc", packedFolder, "run.sh"} {
		err = errors.Join(err, add(stage, path))
	}
	if err := errors.Join(err, archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// addFile adds a file. Only whether it is a program is kept of who made it when.
func (m maker) addFile(archive *tar.Writer, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: m.name() + "/" + name, Size: info.Size(), Mode: mode, ModTime: m.date, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return errors.Join(err, f.Close())
}

// commitDate returns when the code of this program was committed, or the present
// where that is not known.
func commitDate() time.Time {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			if date, err := time.Parse(time.RFC3339, setting.Value); err == nil && setting.Key == "vcs.time" {
				return date
			}
		}
	}
	return time.Now().Truncate(time.Second)
}

// neededGlibc returns the oldest version of glibc, as "2.34", that has what a
// program for Linux asks of it.
func neededGlibc(program string) (version string, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("reading the program %s: %w", program, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	libraries, err := f.DynamicVersionNeeds()
	if err != nil {
		return "", fmt.Errorf("reading what %s needs: %w", program, err)
	}
	newest := 0
	for _, library := range libraries {
		for _, need := range library.Needs {
			var minor int
			if n, _ := fmt.Sscanf(need.Dep, "GLIBC_2.%d", &minor); n == 1 {
				newest = max(newest, minor)
			}
		}
	}
	return fmt.Sprintf("2.%d", newest), nil
}
