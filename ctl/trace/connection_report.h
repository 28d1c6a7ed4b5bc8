// What `nodectl why connection` has found, and how it is printed. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/trace/path.h"
#include "ctl/trace/policy_decision.h"

namespace keelson::ctl {

// The two ends. A pod's node decides about its side only.
struct Connection {
  std::string source, destination;  // "NAMESPACE/NAME"; outside of the cluster an address or a domain name
  std::string source_node, destination_node;  // of the API; empty: outside of the cluster
  std::string here;                           // this node
  std::string protocol;                       // "TCP"
  uint16_t port = 0;
  bool IsOutside() const { return destination_node.empty(); }
};

// One family's way.
struct ConnectionPath {
  IpAddress from, to;
  Path path;
  std::vector<PolicyDecision> decisions;
  bool opens = false;  // as far as this node decides
};

struct ConnectionReport {
  Connection connection;
  std::vector<ConnectionPath> paths;
  std::vector<std::string> notes;
  bool HasProblems() const;  // no way opens
};

ConnectionPath JudgeConnection(const IpAddress& from, Path path);
// What this node cannot say.
std::vector<std::string> NotesOf(const Connection& connection);

boost::json::value ToDocument(const ConnectionReport& report);
std::string ToTable(const ConnectionReport& report);

}  // namespace keelson::ctl
