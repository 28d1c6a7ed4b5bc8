// What a program was built from. The values change with every commit, so only programs that report them
// link this.
#pragma once

namespace keelson {

struct BuildInfo {
  const char* git_commit;      // in full; empty: not from a repository
  const char* git_tree_state;  // clean, dirty, or archive: not from a repository
  const char* build_date;      // of the commit: 2026-11-23T21:18:43Z
};
const BuildInfo& Build();

// Sets the metric kubernetes_build_info. Call once, at start.
void TellBuild();

}  // namespace keelson
