// What `nodectl trace service` has found, and how it is printed.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/trace/judge.h"
#include "ctl/trace/path.h"
#include "ctl/trace/service_view.h"

namespace keelson::ctl {

struct TracedPath {
  std::string port_name, protocol;
  Path path;
  std::vector<Endpoint> endpoints;  // of the port
  size_t connections = 0;           // of this source, that conntrack knows
  std::vector<Problem> problems;
};

struct TraceReport {
  std::string service, type, source, node;
  std::vector<std::string> notes;
  std::vector<Problem> problems;  // with this node, whatever the path
  std::vector<TracedPath> paths;

  bool HasProblems() const;
};

// For programs, and for people.
boost::json::value ToDocument(const TraceReport& report);
std::string ToTable(const TraceReport& report);

}  // namespace keelson::ctl
