// How a verb of crictl is written down: its flags, and what it does with a client.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "ctl/cri/client.h"
#include "ctl/cri/document.h"
#include "ctl/cri/filter.h"
#include "ctl/verb.h"

namespace keelson::ctl {

inline constexpr char kCriGroup[] = "The container runtime, as crictl";  // of the verbs, in the help

// Where verbs are added. Copies share the flags before the verb.
struct CriVerbs {
  CLI::App& root;
  Run& chosen;
  std::shared_ptr<CriFlags> flags;

  // `run` gets a client that is connected. Its result is the exit code.
  CLI::App* Add(const std::string& name, const std::string& help,
                std::function<Result<int>(CriClient& client)> run) const;
};

// -o, and --template for verbs that have go-template. Without the verb's own flag, nodectl's -o counts, then `preset`.
struct CriOutput {
  std::string word, go_template;
  const CLI::Option *own = nullptr, *around = nullptr;

  void AddTo(CLI::App& verb, const CriVerbs& verbs, const std::string& preset, bool templates);
  // kInvalid: a word that this verb does not have.
  Result<CriFormat> Format() const;

 private:
  bool templates_ = false;
};

// The flags of a filter; those of `which` that the verb has: "id name pod namespace image state label latest last all".
void AddFilter(CLI::App& verb, CriFilter& filter, const std::string& which);
// IDs as positional arguments.
void AddIds(CLI::App& verb, std::vector<std::string>& ids, const std::string& what);

// Does `work` for each and goes on after errors, which it tells; an error if there was any.
Result<int> ForEachId(const std::vector<std::string>& ids,
                      const std::function<Result<>(const std::string& id)>& work);

}  // namespace keelson::ctl
