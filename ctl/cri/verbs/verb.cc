#include "ctl/cri/verbs/verb.h"

#include <algorithm>
#include <iostream>

#include "lib/base/text.h"

namespace keelson::ctl {

CLI::App* CriVerbs::Add(const std::string& name, const std::string& help,
                        std::function<Result<int>(CriClient& client)> run) const {
  CLI::App* verb = root.add_subcommand(name, help);
  verb->group(kCriGroup);
  verb->callback([shared = flags, &run_chosen = chosen, run = std::move(run)] {
    run_chosen = [shared, run](const Settings&) -> Result<int> {
      KEELSON_ASSIGN_OR_RETURN(const CriConnection connection, ReadCriConnection(*shared));
      KEELSON_ASSIGN_OR_RETURN(CriClient client, CriClient::Connect(connection));
      return run(client);
    };
  });
  return verb;
}

void CriOutput::AddTo(CLI::App& verb, const CriVerbs& verbs, const std::string& preset, bool templates) {
  word = preset;
  templates_ = templates;
  around = verbs.root.get_option_no_throw("--output");
  own = verb.add_option("-o,--output", word,
                        templates ? "Form of the output: json, yaml, go-template or table"
                                  : "Form of the output: json, yaml or table")
            ->capture_default_str();
  if (templates) verb.add_option("--template", go_template, "The template of -o go-template");
}

Result<CriFormat> CriOutput::Format() const {
  const bool from_around = own->count() == 0 && around && around->count() > 0;
  const std::string chosen = from_around ? around->as<std::string>() : word;
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, ParseCriFormat(chosen));
  if (format == CriFormat::kGoTemplate && !templates_) {
    return Error(Code::kInvalid, "unsupported output format \"" + chosen + "\"");
  }
  if (format != CriFormat::kGoTemplate && !go_template.empty()) {
    return Error(Code::kInvalid, "template can't be used with \"" + chosen + "\" format");
  }
  return format;
}

void AddFilter(CLI::App& verb, CriFilter& filter, const std::string& which) {
  const auto words = SplitWords(which);
  auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (has("id")) verb.add_option("--id", filter.id, "Those of this id");
  if (has("name")) verb.add_option("--name", filter.name, "Those whose name matches this regular expression");
  if (has("namespace")) {
    verb.add_option("--namespace", filter.name_space,
                    "Those whose pod's namespace matches this regular expression");
  }
  if (has("pod")) verb.add_option("-p,--pod", filter.pod, "Those of the pod with this id");
  if (has("image")) verb.add_option("--image", filter.image, "Those of this image");
  if (has("state")) verb.add_option("-s,--state", filter.state, "Those in this state");
  if (has("long-state")) verb.add_option("--state", filter.state, "Those in this state");
  if (has("label")) {
    verb.add_option("--label", filter.labels, "Those with this label, KEY=VALUE; may be repeated");
  }
  if (has("latest")) verb.add_flag("-l,--latest", filter.latest, "The newest one, whatever its state");
  if (has("last")) {
    verb.add_option("-n,--last", filter.last,
                    "So many of the newest ones, whatever their state; 0: no limit");
  }
  if (has("all")) verb.add_flag("-a,--all", filter.all, "Those of all states");
}

void AddIds(CLI::App& verb, std::vector<std::string>& ids, const std::string& what) {
  verb.add_option(what, ids, "Ids, or beginnings of ids");
}

Result<int> ForEachId(const std::vector<std::string>& ids,
                      const std::function<Result<>(const std::string& id)>& work) {
  std::vector<Error> errors;
  for (const std::string& id : ids) {
    Result<> done = id.empty() ? Error(Code::kInvalid, "ID cannot be empty") : work(id);
    if (!done) errors.push_back(done.error());
  }
  if (errors.empty()) return 0;
  for (size_t i = 0; i + 1 < errors.size(); ++i) std::cerr << "nodectl: " << errors[i].message() << "\n";
  return errors.back();
}

}  // namespace keelson::ctl
