#include "lib/base/version.h"

#include "lib/base/metrics.h"

namespace keelson {

void TellBuild() {
  metrics::Gauge(
      "kubernetes_build_info",
      "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree "
      "state, build date, Go version, and compiler from which Kubernetes was built, and platform on "
      "which it is running.",
      {"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version",
       "compiler", "platform"})
      .With({kMajor, kMinor, kGitVersion, "", "clean", "", "", "c++", kPlatform})
      .Set(1);
}

}  // namespace keelson
