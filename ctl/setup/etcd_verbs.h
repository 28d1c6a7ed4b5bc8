// Internal to this room: what the verbs of `nodectl etcd` share. They are in files of their own.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <boost/json/value.hpp>

#include "ctl/etcd/settings.h"
#include "ctl/setup/common.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {

struct EtcdVerbOptions {
  EtcdOptions etcd;
  std::string root;
};
// Options of verbs that ask etcd.
void AddEtcdAccess(CLI::App& verb, EtcdVerbOptions& options);
Result<EtcdAccess> AccessTo(const EtcdVerbOptions& options);
// On standard output, in the chosen form.
void Print(const Settings& settings, const std::string& table, const boost::json::value& document);

void AddEtcdMembers(CLI::App& parent, Run& chosen);
void AddEtcdExpose(CLI::App& parent, Run& chosen);

}  // namespace keelson::ctl
