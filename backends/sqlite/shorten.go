package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// shortenBatch is the number of entries whose names are made short at a time.
const shortenBatch = 1000

// shorten gives the entries of a file from before the names that shortID and shortKey give. Checksums are over the names themselves and stay: what did not
// match before does not match now.
func (s *Store) shorten(ctx context.Context, tx *sql.Tx) error {
	set, err := tx.PrepareContext(ctx, "UPDATE entries SET id = ?, key = ? WHERE n = ?")
	if err != nil {
		return err
	}
	defer set.Close()
	type names struct {
		n       int64
		id, key any
	}
	for after, more := int64(-1<<63), true; more; {
		rows, err := tx.QueryContext(ctx, "SELECT n, id, key FROM entries WHERE n > ? ORDER BY n LIMIT ?", after, shortenBatch)
		if err != nil {
			return err
		}
		batch := make([]names, 0, shortenBatch)
		for rows.Next() {
			var e names
			if err := rows.Scan(&e.n, &e.id, &e.key); err != nil {
				_ = rows.Close()
				return err
			}
			batch = append(batch, e)
		}
		if err := rows.Close(); err != nil {
			return err
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, e := range batch {
			id, isText := e.id.(string)
			key, ok := olderKey(e.key)
			if !isText || !ok {
				continue // it is damaged, and stays so
			}
			if _, err := set.ExecContext(ctx, shortID(id), shortKey(key), e.n); err != nil {
				return fmt.Errorf("entry %q: %w", id, err)
			}
		}
		more = len(batch) == shortenBatch
		if len(batch) > 0 {
			after = batch[len(batch)-1].n
		}
	}
	return nil
}

// olderKey reads the one short form that keys had: a blob that ends with a digest.
func olderKey(v any) (string, bool) {
	switch k := v.(type) {
	case []byte:
		if at := len(k) - digestDigits/2; at >= 0 {
			return string(k[:at]) + hex.EncodeToString(k[at:]), true
		}
	case string:
		return k, true
	}
	return "", false
}
