// nodectl certs check-expiration|renew|generate-csr|certificate-key
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>

#include "ctl/cluster/copy_certs.h"
#include "ctl/pki/renew.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct Options {
  std::string config_file, root, certificates_dir, name;
  std::string kubeconfig_dir = "/etc/kubernetes";
  bool dry_run = false;  // of renew and generate-csr
};

// Verbs share them; each has its own copy of the flags.
void AddFlags(CLI::App& verb, Options& options) {
  verb.fallthrough();
  const component::FlagAdder add{verb};
  add("--config", options.config_file, "File of kubeadm's configuration documents");
  add("--cert-dir", options.certificates_dir, "Where certificates are; default: the configuration's");
  add("--rootfs", options.root, "Directory that stands for the root of the host's files");
}

void AddDryRunFlag(CLI::App& verb, Options& options) {
  component::FlagAdder{verb}("--dry-run", options.dry_run, "Change nothing; say what would be done");
}

Result<InitConfiguration> Configure(const Options& options, std::ostream& err = std::cerr) {
  KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(options.config_file));
  std::vector<std::string> warnings = documents.warnings;
  KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, ReadInit(documents, warnings));
  TellWarnings(warnings, err);
  if (!options.certificates_dir.empty()) config.cluster.certificates_dir = options.certificates_dir;
  return config;
}

CertificateStore StoreOf(Host& host, const InitConfiguration& config, std::ostream& out = std::cout) {
  return {host, config.cluster.certificates_dir, KeyKind(config.cluster.encryption_algorithm), out};
}

Result<int> CheckExpiration(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const InitConfiguration config, Configure(options));
  const std::unique_ptr<Host> host = NewHost(options.root);
  KEELSON_ASSIGN_OR_RETURN(const Expirations found, FindExpirations(StoreOf(*host, config)));
  const WallTime now = Clock::Real().Now();
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(ExpirationDocument(found, now));
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(ExpirationDocument(found, now));
      break;
    case OutputFormat::kTable:
      std::cout << ExpirationTable(found, now);
      break;
  }
  return 0;
}

// All of them, or the one of that name.
Result<> RenewCertificates(const Options& options, VerbReport& report, boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(const InitConfiguration config, Configure(options, report.err()));
  ChosenHost host(options.root, options.dry_run, report.out());
  const CertificateStore store = StoreOf(host.get(), config, report.out());
  fields["dryRun"] = options.dry_run;
  boost::json::array names, skipped;
  const bool all = options.name == "all";
  bool known = all;
  for (const ManagedCertificate& managed : ManagedCertificates()) {
    if (!all && managed.name != options.name) continue;
    known = true;
    if (all && !IsManaged(store, managed)) continue;
    const auto renewed = Renew(store, managed, config.cluster.certificate_validity);
    const bool told =
        !renewed && (renewed.error().Is(Code::kNotFound) || renewed.error().Is(Code::kUnimplemented));
    if (renewed) {
      names.emplace_back(managed.name);
    } else {
      skipped.push_back(boost::json::object{{"name", managed.name}, {"reason", renewed.error().message()}});
    }
    fields["renewed"] = names;
    fields["skipped"] = skipped;
    if (!renewed && !(all && told)) return renewed.error();
    if (renewed && options.dry_run) continue;  // the host has said what it would write
    report.out() << (renewed ? managed.long_name + " renewed" : renewed.error().message()) << "\n";
  }
  if (!known) return Error(Code::kInvalid, "unknown certificate \"" + options.name + "\"");
  if (options.dry_run) return {};
  report.out() << "\nDone renewing certificates. You must restart kube-controlplane, so that it can use the "
                  "new certificates.\n";
  return {};
}

Result<> GenerateRequests(const Options& options, VerbReport& report, boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, Configure(options, report.err()));
  ChosenHost host(options.root, options.dry_run, report.out());
  std::vector<std::string> warnings;
  KEELSON_RETURN_IF_ERROR(Complete(config, LookAtMachine(host.get()), warnings));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<CertificatePlan> certificates, PlanCertificates(config));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<KubeconfigPlan> kubeconfigs, PlanKubeconfigs(config));
  fields["dryRun"] = options.dry_run;
  fields["certificatesDir"] = config.cluster.certificates_dir;
  fields["kubeconfigDir"] = options.kubeconfig_dir;
  return MakeRequests(StoreOf(host.get(), config, report.out()), certificates, kubeconfigs,
                      options.kubeconfig_dir, config.cluster.cluster_name);
}

Result<> GenerateKey(VerbReport& report, boost::json::object& fields) {
  const std::string key = NewCertificateKey();
  fields["certificateKey"] = key;
  if (!report.has_document()) std::cout << key << "\n";
  return {};
}

void AddRenew(CLI::App& parent, const std::shared_ptr<Options>& options, Run& chosen) {
  CLI::App* verb = parent.add_subcommand("renew", "Renew a certificate, or all of them; keys stay");
  AddFlags(*verb, *options);
  std::string names = "all";
  for (const ManagedCertificate& managed : ManagedCertificates()) names += ", " + managed.name;
  verb->add_option("name", options->name, "Which: " + names)->required();
  AddDryRunFlag(*verb, *options);
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) {
      return RunReported(settings, "CertificateRenewalReport",
                         [&](VerbReport& report, boost::json::object& fields) {
                           return RenewCertificates(*options, report, fields);
                         });
    };
  });
}

}  // namespace

void AddCerts(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* certs = parent.add_subcommand("certs", "A cluster's certificates");
  certs->require_subcommand(1)->fallthrough();
  CLI::App* check = certs->add_subcommand("check-expiration", "Show when certificates expire");
  AddFlags(*check, *options);
  check->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return CheckExpiration(*options, settings); };
  });
  AddRenew(*certs, options, chosen);
  CLI::App* requests =
      certs->add_subcommand("generate-csr", "Make keys and certificate requests for an external CA");
  AddFlags(*requests, *options);
  component::FlagAdder{*requests}("--kubeconfig-dir", options->kubeconfig_dir, "Where kubeconfigs go");
  AddDryRunFlag(*requests, *options);
  requests->callback([options, &chosen] {
    chosen = [options](const Settings& settings) {
      return RunReported(settings, "CertificateRequestsReport",
                         [&](VerbReport& report, boost::json::object& fields) {
                           return GenerateRequests(*options, report, fields);
                         });
    };
  });
  CLI::App* key =
      certs->add_subcommand("certificate-key", "Print a random key, as kubeadm encrypts certificates with");
  key->fallthrough();
  key->callback([&chosen] {
    chosen = [](const Settings& settings) {
      return RunReported(settings, "CertificateKeyReport", GenerateKey);
    };
  });
}

}  // namespace keelson::ctl
