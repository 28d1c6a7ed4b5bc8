// nodectl token create|list|delete|generate
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <iostream>

#include "ctl/phases/join_command.h"
#include "ctl/setup/common.h"
#include "ctl/setup/verb_report.h"
#include "ctl/token/discovery.h"
#include "ctl/token/list.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

constexpr char kReport[] = "TokenReport";
constexpr char kDryRunText[] = "Change nothing; say what would be done";

struct Options {
  BootstrapToken token;
  std::chrono::seconds ttl = std::chrono::hours(24);
  std::string config_file;
  bool print_join_command = false, dry_run = false;
  std::string certificate_key;
  std::vector<std::string> deleted;
};

// The token of the flags, or the first one of a file of configuration documents; checked.
Result<BootstrapToken> WantedToken(const Options& options) {
  InitConfiguration config;
  std::vector<std::string> warnings;
  if (options.config_file.empty()) {
    config.bootstrap_tokens = {options.token};
    config.bootstrap_tokens[0].ttl = options.ttl;
  } else {
    KEELSON_ASSIGN_OR_RETURN(const ConfigDocuments documents, ReadConfigFile(options.config_file));
    KEELSON_ASSIGN_OR_RETURN(config, ReadInit(documents, warnings));
    if (config.bootstrap_tokens.empty()) config.bootstrap_tokens.emplace_back();
  }
  KEELSON_RETURN_IF_ERROR(CompleteTokens(config.bootstrap_tokens));
  BootstrapToken out = config.bootstrap_tokens[0];
  if (out.token.empty()) out.token = NewToken();
  return out;
}

Result<std::string> CommandFor(const std::string& token, const std::string& certificate_key,
                               const Settings& settings) {
  const std::string path = settings.kubeconfig.empty() ? DefaultKubeconfig() : settings.kubeconfig;
  KEELSON_ASSIGN_OR_RETURN(const client::RestConfig config, client::LoadKubeconfig(path));
  KEELSON_ASSIGN_OR_RETURN(const std::string pin, PinOf(config.ca_pem));
  const size_t scheme = config.server.find("://");
  return JoinCommand(scheme == std::string::npos ? config.server : config.server.substr(scheme + 3), token,
                     pin, true, certificate_key);
}

// The line for people, unless a program reads a document.
void PrintLine(const VerbReport& report, const std::string& line) {
  if (!report.has_document()) std::cout << line << "\n";
}

Result<> CreateOnServer(const corev1::Secret& secret, const std::string& id, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  const auto created = api.Create(secret);
  if (created) return {};
  if (created.error().Is(Code::kAlreadyExists)) {
    return Error(Code::kAlreadyExists, "a token with id \"" + id + "\" already exists");
  }
  return created.error().Wrap("failed to create or update bootstrap token");
}

Result<> Create(const Options& options, const Settings& settings, VerbReport& report,
                boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(const BootstrapToken token, WantedToken(options));
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret secret, TokenSecret(token, Clock::Real().Now()));
  const std::string id = token.token.substr(0, 6);
  if (options.dry_run) {
    report.out() << "[dryrun] Would create the Secret kube-system/" << TokenSecretName(id) << "\n";
  } else {
    KEELSON_RETURN_IF_ERROR(CreateOnServer(secret, id, settings));
  }
  KEELSON_ASSIGN_OR_RETURN(const BootstrapToken made, TokenOf(secret));
  fields = TokenDocument(made).as_object();
  fields.erase("kind");
  fields.erase("apiVersion");
  fields["dryRun"] = options.dry_run;
  std::string line = token.token;
  if (options.print_join_command) {
    KEELSON_ASSIGN_OR_RETURN(line, CommandFor(token.token, options.certificate_key, settings));
    fields["joinCommand"] = line;
  }
  PrintLine(report, line);
  return {};
}

Result<int> List(const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  client::ListOptions only;
  only.field_selector = "type=bootstrap.kubernetes.io/token";
  const auto secrets = api.List<corev1::Secret>("kube-system", only);
  if (!secrets) return secrets.error().Wrap("failed to list bootstrap tokens");
  std::vector<BootstrapToken> tokens;
  for (const corev1::Secret& secret : *secrets) {
    Result<BootstrapToken> token = TokenOf(secret);
    if (token) {
      tokens.push_back(*std::move(token));
    } else {
      std::cerr << "nodectl: " << token.error().message() << "\n";
    }
  }
  if (settings.format() == OutputFormat::kTable) {
    std::cout << TokenTable(tokens, Clock::Real().Now());
    return 0;
  }
  for (const BootstrapToken& token : tokens) {
    const bool yaml = settings.format() == OutputFormat::kYaml;
    if (yaml && &token != &tokens.front()) std::cout << "---\n";
    std::cout << (yaml ? ToYaml(TokenDocument(token)) : ToJson(TokenDocument(token)));
  }
  return 0;
}

Result<std::vector<std::string>> IdsOf(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    if (IsTokenId(text)) {
      out.push_back(text);
    } else if (auto token = ParseToken(text)) {
      out.push_back(token->id);
    } else {
      return Error(Code::kInvalid,
                   "given token didn't match pattern \"\\\\A([a-z0-9]{6})\\\\z\" or "
                   "\"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\"");
    }
  }
  return out;
}

Result<> Delete(const Options& options, const Settings& settings, VerbReport& report,
                boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(options.deleted));
  fields["dryRun"] = options.dry_run;
  boost::json::array& deleted = fields["deleted"].emplace_array();
  std::optional<client::RestClient> api;
  if (!options.dry_run) {
    KEELSON_ASSIGN_OR_RETURN(api, ConnectApi(settings));
  }
  for (const std::string& id : ids) {
    if (!api) {
      report.out() << "[dryrun] Would delete the Secret kube-system/" << TokenSecretName(id) << "\n";
      continue;
    }
    if (auto gone = api->Delete<corev1::Secret>("kube-system", TokenSecretName(id)); !gone) {
      return gone.error().Wrap("failed to delete bootstrap token \"" + id + "\"");
    }
    deleted.emplace_back(id);
    report.out() << "bootstrap token \"" << id << "\" deleted\n";
  }
  return {};
}

Result<> Generate(VerbReport& report, boost::json::object& fields) {
  const std::string token = NewToken();
  fields["token"] = token;
  PrintLine(report, token);
  return {};
}

void AddCreate(CLI::App& parent, const std::shared_ptr<Options>& options, Run& chosen) {
  CLI::App* verb = parent.add_subcommand("create", "Create a bootstrap token on the server");
  verb->fallthrough();
  verb->add_option("token", options->token.token, "The token; default: a random one");
  const component::FlagAdder add{*verb};
  add("--ttl", options->ttl, "How long the token lives; 0: for ever");
  add("--usages", options->token.usages, "What for: signing, authentication; default: both");
  add("--groups", options->token.groups, "Groups of who authenticates with it; default: those that may join");
  add("--description", options->token.description, "What people should know of it");
  add("--config", options->config_file, "File of kubeadm's configuration documents");
  add("--print-join-command", options->print_join_command, "Print the whole command that joins a node");
  add("--certificate-key", options->certificate_key,
      "With --print-join-command: the command joins a control plane by this key");
  add("--dry-run", options->dry_run, kDryRunText);
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) {
      return RunReported(settings, kReport, [&](VerbReport& report, boost::json::object& fields) {
        return Create(*options, settings, report, fields);
      });
    };
  });
}

}  // namespace

void AddToken(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* token = parent.add_subcommand("token", "Bootstrap tokens, which let nodes join");
  token->require_subcommand(1)->fallthrough();
  AddCreate(*token, options, chosen);
  CLI::App* list = token->add_subcommand("list", "List the server's bootstrap tokens");
  list->fallthrough();
  list->callback([&chosen] { chosen = [](const Settings& settings) { return List(settings); }; });
  CLI::App* removal = token->add_subcommand("delete", "Delete bootstrap tokens");
  removal->fallthrough();
  removal->add_option("token", options->deleted, "Tokens, or their ids")->required();
  component::FlagAdder{*removal}("--dry-run", options->dry_run, kDryRunText);
  removal->callback([options, &chosen] {
    chosen = [options](const Settings& settings) {
      return RunReported(settings, kReport, [&](VerbReport& report, boost::json::object& fields) {
        return Delete(*options, settings, report, fields);
      });
    };
  });
  CLI::App* generate =
      token->add_subcommand("generate", "Print a random token; the server does not learn of it");
  generate->fallthrough();
  generate->callback([&chosen] {
    chosen = [](const Settings& settings) { return RunReported(settings, kReport, Generate); };
  });
}

}  // namespace keelson::ctl
