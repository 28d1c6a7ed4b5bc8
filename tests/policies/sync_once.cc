// For tests: an agent that begins in a node's network namespace, with the objects of its standard input
// (PolicyNode::Save), syncs once and ends. kill_test kills it on its way.
#include <cstdio>

#include "lib/base/file.h"
#include "tests/policies/policy_node.h"

namespace keelson::policies {
namespace {

Result<> Run() {
  KEELSON_ASSIGN_OR_RETURN(const std::string saved, ReadAll(0, "standard input"));
  KEELSON_ASSIGN_OR_RETURN(const linux::NetNs here, linux::NetNs::OpenCurrent());
  const policy::Node node{"node1", {*IpPrefix::Parse("10.1.0.0/24"), *IpPrefix::Parse("fd01::/64")}};
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<PolicyNode> agent, PolicyNode::Open(here, node));
  KEELSON_RETURN_IF_ERROR(agent->Load(saved));
  KEELSON_ASSIGN_OR_RETURN(const bool changed, agent->Sync(true));
  (void)changed;
  return {};
}

}  // namespace
}  // namespace keelson::policies

int main() {
  const keelson::Result<> done = keelson::policies::Run();
  if (!done) std::printf("%s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
