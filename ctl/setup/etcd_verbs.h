// Internal to this room: what the verbs of `nodectl etcd` share. They are in files of their own.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "ctl/etcd/settings.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {

struct EtcdVerbOptions {
  EtcdOptions etcd;
  std::string root;
  bool dry_run = false;  // of verbs that change something
};
// Options of verbs that ask etcd.
void AddEtcdAccess(CLI::App& verb, EtcdVerbOptions& options);
void AddEtcdDryRun(CLI::App& verb, EtcdVerbOptions& options);
// Lets the verb do `work`, with --dry-run, and print a document of this kind.
template <typename Options>
void ReportAs(CLI::App& verb, const char* kind, const std::shared_ptr<Options>& options,
              Result<> (*work)(const Options&, VerbReport&, boost::json::object&), Run& chosen) {
  AddEtcdDryRun(verb, *options);
  verb.callback([kind, options, work, &chosen] {
    chosen = [kind, options, work](const Settings& settings) {
      return RunReported(settings, kind, [&](VerbReport& report, boost::json::object& fields) {
        return work(*options, report, fields);
      });
    };
  });
}

Result<EtcdAccess> AccessTo(const EtcdVerbOptions& options);

void AddEtcdBackup(CLI::App& parent, Run& chosen);
void AddEtcdMembers(CLI::App& parent, Run& chosen);
void AddEtcdExpose(CLI::App& parent, Run& chosen);

}  // namespace keelson::ctl
