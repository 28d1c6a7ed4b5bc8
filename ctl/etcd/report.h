// What the verbs of `nodectl etcd` print: etcdctl's columns, and documents for programs. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/etcd/plan.h"
#include "ctl/problem.h"

namespace keelson::ctl {

std::string MembersTable(const std::vector<etcd::MemberInfo>& members);
boost::json::value MembersDocument(const std::vector<etcd::MemberInfo>& members);

// What is wrong: members that do not answer or have no leader, and alarms with their fix.
std::vector<Problem> ProblemsOf(const EtcdView& view);
std::string StatusTable(const EtcdView& view);  // with the problems below
boost::json::value StatusDocument(const EtcdView& view);

std::string SizeText(int64_t bytes);  // 20 kB, 1.3 MB

}  // namespace keelson::ctl
