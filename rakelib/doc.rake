# frozen_string_literal: true

# YARD reads Ruby only, and many methods are defined in Rust. So the list of what must be documented
# comes from the loaded gem, and YARD says whether there is text for it.
module UndocumentedApi
  module_function

  # Paths ("Zstd.compress", "Zstd::Reader#read") of public things without a docstring.
  def list
    modules_under(Zstd).flat_map { |mod| [mod.name, *constant_paths(mod), *method_paths(mod)] }
                       .reject { |path| documented?(path) }
  end

  # A constant that only points at a class of somebody else's is not ours to document.
  def modules_under(mod)
    nested = constants_of(mod).grep(Module).select { |inner| inner.name&.start_with?("#{mod.name}::") }
    [mod, *nested.flat_map { |inner| modules_under(inner) }]
  end

  def constant_paths(mod)
    mod.constants(false).reject { |name| mod.const_get(name).is_a?(Module) }.map { |name| "#{mod.name}::#{name}" }
  end

  def method_paths(mod)
    of_class = mod.singleton_class.public_instance_methods(false) - generated_by_struct(mod)
    of_class.map { |name| "#{mod.name}.#{name}" } +
      mod.public_instance_methods(false).map { |name| "#{mod.name}##{name}" }
  end

  # `new`, `members` and the like, which Struct gives each class that it makes.
  def generated_by_struct(mod)
    mod.is_a?(Class) && mod < Struct ? Struct.new(:any).singleton_class.public_instance_methods(false) : []
  end

  def documented?(path)
    # YARD keeps the text of `new` with `initialize`; one text does for the reader and writer of an attribute.
    object = YARD::Registry.at(path) || YARD::Registry.at(path.sub(/\.new\z/, "#initialize").delete_suffix("="))
    return false unless object

    object.visibility != :public || object.has_tag?(:private) || !object.docstring.blank?
  end

  def constants_of(mod)
    mod.constants(false).map { |name| mod.const_get(name) }
  end
end

desc "Build the API documentation; fails when a public method has none"
task doc: :compile do
  require "yard"
  $LOAD_PATH.unshift(File.expand_path("lib"))
  require "zstd_rb"

  YARD::CLI::Yardoc.run("--fail-on-warning") # exits on a warning
  undocumented = UndocumentedApi.list
  abort "Undocumented:\n  #{undocumented.join("\n  ")}" unless undocumented.empty?
end
