import { Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentProps, ReactNode } from 'react';

type Props = ButtonProps & Omit<ComponentProps<'a'>, keyof ButtonProps>;

function AnchorButton(props: Props): ReactNode {
  return <Button component="a" {...props} />;
}

/** A link to a page of the console that looks like a button. */
export const LinkButton = createLink(AnchorButton);
