// Package files has what systems do differently with files: durable names, locks, files that
// others read while they are replaced, and free space.
package files
