// What a program was built from. Linked by programs that tell it alone, for it changes with each commit.
#pragma once

namespace keelson {

struct BuildInfo {
  const char* git_commit;      // in full; empty: not from a repository
  const char* git_tree_state;  // clean, dirty, or archive: not from a repository
  const char* build_date;      // of the commit: 2026-11-23T21:18:43Z
};
const BuildInfo& Build();

// kubernetes_build_info, on /metrics.
void TellBuild();

}  // namespace keelson
