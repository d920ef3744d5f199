"use strict";
// What a reader chose, in the page's address: #SECTION?name=value&name=value. Links, bookmarks and reloads keep it.
//   state.get("filter")            the value, or "" without one
//   state.set({ filter: "disk" })  change values; "" and null remove one
//   state.onchange(listener)       call listener() when the address changes: back, forward, a link with other values
//   state.section                  the id after the #, decoded
//   state.address("hosts")         the address of a section with the present values
const state = (() => {
  const LONGEST = 8000; // characters of an address that are read
  const listeners = [];
  let section = "";
  let values = new URLSearchParams();
  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return ""; }
  }
  function read() {
    const [id, ...rest] = location.hash.slice(1, LONGEST).split("?");
    section = decoded(id);
    return rest.length ? rest.join("?") : null;
  }
  function address(id = section) {
    const text = values.toString();
    return `${location.href.split("#")[0]}${id || text ? "#" : ""}${encodeURIComponent(id)}${text ? `?${text}` : ""}`;
  }
  const write = () => history.replaceState(history.state, "", address());
  const first = read();
  if (first !== null) values = new URLSearchParams(first);
  addEventListener("hashchange", () => {
    const text = read();
    if (text === null && location.hash) { // a link to a section of this page: it keeps the values
      if (values.size) write();
    } else if ((text ?? "") !== values.toString()) {
      values = new URLSearchParams(text ?? "");
      for (const listener of listeners) listener();
    }
  });
  return {
    get section() { return section; },
    get: (name) => values.get(name) ?? "",
    set(changes) {
      for (const [name, value] of Object.entries(changes)) {
        if (value === "" || value === null || value === undefined) values.delete(name);
        else values.set(name, String(value));
      }
      write();
    },
    onchange(listener) { listeners.push(listener); },
    address,
  };
})();
