// nodectl token create|list|delete|generate
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/phases/join_command.h"
#include "ctl/setup/common.h"
#include "ctl/token/discovery.h"
#include "ctl/token/list.h"
#include "ctl/verb.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct Options {
  BootstrapToken token;
  std::chrono::seconds ttl = std::chrono::hours(24);
  std::string config_file;
  bool print_join_command = false;
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

Result<int> Create(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const BootstrapToken token, WantedToken(options));
  KEELSON_ASSIGN_OR_RETURN(const corev1::Secret secret, TokenSecret(token, Clock::Real().Now()));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  if (auto created = api.Create(secret); !created) {
    if (created.error().Is(Code::kAlreadyExists)) {
      return Error(Code::kAlreadyExists,
                   "a token with id \"" + token.token.substr(0, 6) + "\" already exists");
    }
    return created.error().Wrap("failed to create or update bootstrap token");
  }
  std::string line = token.token;
  if (options.print_join_command) {
    KEELSON_ASSIGN_OR_RETURN(line, CommandFor(token.token, options.certificate_key, settings));
  }
  std::cout << line << "\n";
  return 0;
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

Result<int> Delete(const Options& options, const Settings& settings) {
  std::vector<std::string> ids;
  for (const std::string& text : options.deleted) {
    if (IsTokenId(text)) {
      ids.push_back(text);
    } else if (auto token = ParseToken(text)) {
      ids.push_back(token->id);
    } else {
      return Error(Code::kInvalid,
                   "given token didn't match pattern \"\\\\A([a-z0-9]{6})\\\\z\" or "
                   "\"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\"");
    }
  }
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ConnectApi(settings));
  for (const std::string& id : ids) {
    if (auto gone = api.Delete<corev1::Secret>("kube-system", TokenSecretName(id)); !gone) {
      return gone.error().Wrap("failed to delete bootstrap token \"" + id + "\"");
    }
    std::cout << "bootstrap token \"" << id << "\" deleted\n";
  }
  return 0;
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
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return Create(*options, settings); };
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
  removal->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return Delete(*options, settings); };
  });
  CLI::App* generate =
      token->add_subcommand("generate", "Print a random token; the server does not learn of it");
  generate->fallthrough();
  generate->callback([&chosen] {
    chosen = [](const Settings&) -> Result<int> {
      std::cout << NewToken() << "\n";
      return 0;
    };
  });
}

}  // namespace keelson::ctl
