// Package keyed makes a core.Store, with views, of whatever keeps values under keys: what every store has to do is done here, and a Medium
// is two methods.
//
//	store := keyed.New(medium) // core.Store and core.ViewStore
//
// Every call of the store is one transaction of the medium. Where the medium lets one transaction in at a time and shows it what others wrote, several
// processes may use one store at once. Keys and values are bytes and may hold any, line ends and NUL included. Erased bytes are gone once the
// medium has dropped what it was told to delete.
package keyed
