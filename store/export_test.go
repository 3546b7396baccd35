package store

import (
	"context"
	"database/sql"
	"fmt"
)

// LimitPages makes the file full at n pages, as a disk without room would; 0 lifts that.
func (s *Store) LimitPages(n int) error {
	if n == 0 {
		n = 1 << 30
	}
	_, err := s.db.writer.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count = %d", n))
	return err
}

// Pages is how many pages the file has.
func (s *Store) Pages() (n int, err error) {
	err = s.db.writer.QueryRowContext(context.Background(), "PRAGMA page_count").Scan(&n)
	return n, err
}

// Exec runs a statement beside what the package does.
func (s *Store) Exec(statement string, args ...any) error {
	return s.db.update(context.Background(), func(c *sql.Conn) error {
		_, err := c.ExecContext(context.Background(), statement, args...)
		return err
	})
}
